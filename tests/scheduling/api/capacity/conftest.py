"""Two pools with a slot each, one for each controller."""

from __future__ import annotations

import pytest

from scheduling.models import Pool, Slot
from tests.support.capacity_setup import make_slot, pool_named


@pytest.fixture
def pool(db: None) -> Pool:
    return pool_named("cml-eu", max_slots=6)


@pytest.fixture
def other_pool(db: None) -> Pool:
    return pool_named("cml-us")


@pytest.fixture
def slot(pool: Pool) -> Slot:
    return make_slot(pool, 1)


@pytest.fixture
def other_slot(other_pool: Pool) -> Slot:
    return make_slot(other_pool, 1)
