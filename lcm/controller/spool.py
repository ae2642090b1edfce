"""Bounded, crash-safe spool of posts on disk, in order."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

logger = logging.getLogger(__name__)


class SpoolFull(Exception):
    """The spool has no room for another post."""


@dataclass(frozen=True)
class Post:
    """A post about one attempt of a session. `key` makes it idempotent."""

    session_id: str
    attempt: int
    path: str
    body: dict[str, object]
    key: str


class Spool:
    """A folder with one file per post, named by a sequence number."""

    def __init__(self, folder: Path, *, max_entries: int, max_bytes: int) -> None:
        self.folder = folder
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for leftover in folder.glob("*.new"):
            leftover.unlink()
        self._sizes = {int(path.stem): path.stat().st_size for path in self._files()}
        self._total = sum(self._sizes.values())
        self._next = max(self._sizes, default=0) + 1

    def __len__(self) -> int:
        return len(self._sizes)

    def load(self) -> Iterator[tuple[int, Post]]:
        """Yield the posts of an earlier run. Unreadable files are renamed to *.bad."""
        for path in self._files():
            try:
                yield int(path.stem), Post(**json.loads(path.read_text()))
            except (ValueError, TypeError, OSError) as error:
                logger.error("spooled post %s is unreadable and was renamed to *.bad: %s", path.name, error)
                path.rename(path.with_suffix(".bad"))
                self._total -= self._sizes.pop(int(path.stem), 0)

    def reserve(self, post: Post) -> tuple[int, bytes]:
        """Return a sequence number and the bytes to write under it."""
        data = json.dumps(asdict(post)).encode()
        if len(self._sizes) >= self._max_entries or self._total + len(data) > self._max_bytes:
            raise SpoolFull(f"the spool is full with {len(self._sizes)} posts that LCM has not accepted")
        number = self._next
        self._next += 1
        self._sizes[number] = len(data)
        self._total += len(data)
        return number, data

    def write(self, number: int, data: bytes) -> None:
        """Write a post durably. Thread-safe. A failure leaves no file."""
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

    def remove(self, number: int) -> None:
        """Remove a post. If its file stays, the next run sends it again and LCM ignores the duplicate."""
        try:
            self._path(number).unlink(missing_ok=True)
        except OSError as error:
            logger.warning("spooled post %d could not be removed: %s", number, error)
        self._total -= self._sizes.pop(number, 0)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:012d}.json"

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("*.json") if path.stem.isdigit())
