"""Fixtures of a pool that a test drives by hand."""

from tests.support.capacity_fixtures import clock, fleet, lab, lab_on, loose, mixed, pool, runtime, tuned  # noqa: F401
