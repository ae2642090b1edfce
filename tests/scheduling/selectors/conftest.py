"""The fixed time of tests that drive a pool by hand."""

from tests.support.capacity_fixtures import now  # noqa: F401
