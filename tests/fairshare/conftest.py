"""Fixtures of fair share."""

from __future__ import annotations

import pytest

from scheduling.capacity import tick_trigger
from tests.support.fairshare_setup import FairShareStage


@pytest.fixture
def stage(db) -> FairShareStage:
    return FairShareStage()


@pytest.fixture(autouse=True)
def no_broker(monkeypatch):
    monkeypatch.setattr(tick_trigger, "_send", lambda _: None)
