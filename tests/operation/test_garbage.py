"""A worker process frees cyclic garbage although ticks hide it from the garbage collector."""

import gc
import weakref

import pytest

from lcm import celery
from scheduling.framework.memory import without_collecting


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def later(monkeypatch):
    """Move the worker's monotonic clock."""

    def move(seconds):
        monkeypatch.setattr(celery.time, "monotonic", lambda: celery._collected_at + seconds)

    return move


def garbage_of_a_tick():
    with without_collecting():
        return weakref.ref(Cycle())


def test_garbage_of_a_tick_is_freed_between_tasks_once_a_minute(later):
    made = garbage_of_a_tick()
    gc.collect(1)
    assert made() is not None, "a tick moves what it made to the oldest generation"
    later(celery.COLLECT_SECONDS - 1)
    celery.collect_garbage()
    assert made() is not None
    later(celery.COLLECT_SECONDS)
    celery.collect_garbage()
    assert made() is None
