"""The stage of the scheduler's pages."""

from tests.scheduler_pages.conftest import clock, fleet, lab, pool, runtime, tuned

__all__ = ["clock", "fleet", "lab", "pool", "runtime", "tuned"]
