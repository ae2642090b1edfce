"""Fixtures of the scheduler's pages."""

from tests.scheduling.pages.scheduler.conftest import clock, fleet, lab, pool, runtime, tuned

__all__ = ["clock", "fleet", "lab", "pool", "runtime", "tuned"]
