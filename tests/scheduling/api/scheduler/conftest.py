"""Fixtures of the scheduler's pages."""

from tests.scheduling.pages.scheduler.conftest import clock, configure_pool, fleet, new_session, pool, runtime

__all__ = ["clock", "configure_pool", "fleet", "new_session", "pool", "runtime"]
