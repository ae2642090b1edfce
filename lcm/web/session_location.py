"""Where a session is: the app that places sessions says so, for the first sentence of their page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lcm.models import LabletSession


@dataclass(frozen=True)
class SessionLocation:
    """The page of its pool, and its slot once it has one."""

    pool_url: str
    slot: str = ""
    slot_url: str = ""


Reader = Callable[[LabletSession], SessionLocation | None]
_readers: list[Reader] = []


def register_session_location(reader: Reader) -> None:
    """Called when an app is ready."""
    _readers.append(reader)


def session_location(session: LabletSession) -> SessionLocation | None:
    return next((place for reader in _readers if (place := reader(session))), None)
