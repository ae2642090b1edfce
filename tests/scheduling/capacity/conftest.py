"""The fixed time of tests that run a pool step by step."""

from tests.support.capacity_fixtures import now  # noqa: F401
