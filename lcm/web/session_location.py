"""Location of a session for its page, provided by the app that places sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lcm.models import LabletSession


@dataclass(frozen=True)
class SessionLocation:
    """The page of the session's pool, and of its slot if it has one."""

    pool_url: str
    slot: str = ""
    slot_url: str = ""


Reader = Callable[[LabletSession], SessionLocation | None]
_readers: list[Reader] = []


def register_session_location(reader: Reader) -> None:
    """Register the location provider; call it from `AppConfig.ready`."""
    _readers.append(reader)


def session_location(session: LabletSession) -> SessionLocation | None:
    return next((place for reader in _readers if (place := reader(session))), None)
