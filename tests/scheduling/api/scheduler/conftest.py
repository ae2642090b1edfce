"""Fixtures of the scheduler's pages."""

from tests.scheduling.pages.scheduler.conftest import clock, fleet, new_session, pool, runtime, configure_pool

__all__ = ["clock", "fleet", "new_session", "pool", "runtime", "configure_pool"]
