"""Fixtures of a pool that a test drives by hand."""

from tests.support.capacity_fixtures import (
    clock,
    fleet,
    new_session,
    session_on,
    preemptible_requester,
    mixed_fleet,
    now,
    pool,
    runtime,
    configure_pool,
)  # noqa: F401
