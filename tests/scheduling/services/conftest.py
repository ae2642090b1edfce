"""Fixtures of a pool that a test runs step by step."""

from tests.support.capacity_fixtures import (
    clock,
    configure_pool,
    fleet,
    new_session,
    now,
    pool,
    runtime,
    session_on,
)

__all__ = ["clock", "configure_pool", "fleet", "new_session", "now", "pool", "runtime", "session_on"]
