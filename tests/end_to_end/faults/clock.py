"""A shifted clock, shared by the harness and one controller through a file."""

from __future__ import annotations

import datetime as datetime_module
import mmap
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZE = struct.calcsize("d")


class ClockFile:
    """Holds the offset in seconds, written by the harness and added by the controller."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(struct.pack("d", 0.0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SIZE)

    @property
    def offset(self) -> float:
        found: float = struct.unpack("d", self._memory[:SIZE])[0]
        return found

    @offset.setter
    def offset(self, seconds: float) -> None:
        self._memory[:SIZE] = struct.pack("d", seconds)


def shift_clock(offset: Callable[[], float]) -> None:
    """Shift `time.time` and `datetime.now` of this process. Call it before other modules are imported."""
    real_time = time.time
    real_datetime = datetime_module.datetime

    class ShiftedDatetime(real_datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromtimestamp(real_time() + offset(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.fromtimestamp(real_time() + offset(), datetime_module.UTC).replace(tzinfo=None)

    time.time = lambda: real_time() + offset()
    datetime_module.datetime = ShiftedDatetime  # type: ignore[misc]
