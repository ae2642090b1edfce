"""Where a session is: the app that places sessions says so, for the first sentence of their page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lcm.models import LabletSession


@dataclass(frozen=True)
class Place:
    """The page of its pool, and its slot once it has one."""

    pool_url: str
    slot: str = ""
    slot_url: str = ""


Reader = Callable[[LabletSession], Place | None]
_readers: list[Reader] = []


def register_place(reader: Reader) -> None:
    """Called when an app is ready."""
    _readers.append(reader)


def place_of(session: LabletSession) -> Place | None:
    return next((place for reader in _readers if (place := reader(session))), None)
