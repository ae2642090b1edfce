"""Posts on disk until LCM has them: in order, with a bound, there after a crash."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)


class SpoolFull(Exception):
    """There is no room for another post."""


@dataclass(frozen=True)
class Post:
    """One post: of which session's attempt, where it goes, and the key under which LCM does it once."""

    session_id: str
    attempt: int
    path: str
    body: dict[str, Any]
    key: str


class Spool:
    """A folder with a file a post; names count up, so their order is the order of writing."""

    def __init__(self, folder: Path, *, most_entries: int, most_bytes: int) -> None:
        self.folder = folder
        self._most_entries = most_entries
        self._most_bytes = most_bytes
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for leftover in folder.glob("*.new"):
            leftover.unlink()
        self._sizes = {int(path.stem): path.stat().st_size for path in self._files()}
        self._total = sum(self._sizes.values())
        self._next = max(self._sizes, default=0) + 1

    def __len__(self) -> int:
        return len(self._sizes)

    def load(self) -> Iterator[tuple[int, Post]]:
        """What an earlier run left; a file that cannot be read is put aside."""
        for path in self._files():
            try:
                yield int(path.stem), Post(**json.loads(path.read_text()))
            except (ValueError, TypeError, OSError) as error:
                logger.error("spooled post %s cannot be read and is put aside: %s", path.name, error)
                path.rename(path.with_suffix(".bad"))
                self._total -= self._sizes.pop(int(path.stem), 0)

    def reserve(self, post: Post) -> tuple[int, bytes]:
        """A place in the order and what is to be written there."""
        data = json.dumps(asdict(post)).encode()
        if len(self._sizes) >= self._most_entries or self._total + len(data) > self._most_bytes:
            raise SpoolFull(f"{len(self._sizes)} posts wait for LCM, there is no room for more")
        number = self._next
        self._next += 1
        self._sizes[number] = len(data)
        self._total += len(data)
        return number, data

    def write(self, number: int, data: bytes) -> None:
        """Safe against a crash once it returns; may run in a thread. A failure leaves no file."""
        path = self._path(number)
        new = path.with_suffix(".new")
        try:
            with new.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            new.rename(path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)
            raise

    def put(self, post: Post) -> int:
        number, data = self.reserve(post)
        self.write(number, data)
        return number

    def remove(self, number: int) -> None:
        """A file that cannot be removed is sent again by the next run, which LCM takes for a repeat."""
        try:
            self._path(number).unlink(missing_ok=True)
        except OSError as error:
            logger.warning("spooled post %d cannot be removed: %s", number, error)
        self._total -= self._sizes.pop(number, 0)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:012d}.json"

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("*.json") if path.stem.isdigit())
