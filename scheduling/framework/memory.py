"""Work that makes many objects and no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Looking for garbage where there is none would cost a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            _count_as_old()
            gc.enable()


def _count_as_old() -> None:
    """Otherwise the first object made afterwards has all that is new looked through at once."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
