"""Fixtures of a pool that a test runs step by step."""

from tests.scheduling.conftest import *  # noqa: F403
from tests.support.capacity_fixtures import now

__all__ = ["now"]
