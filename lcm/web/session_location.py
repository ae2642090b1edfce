"""Location of a session for its page, provided by the app that places sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lcm.extensions import Extension
from lcm.models import LabletSession


@dataclass(frozen=True)
class SessionLocation:
    """The page of the session's pool, and of its slot if it has one; what the slot's state means for it."""

    pool_url: str
    slot: str = ""
    slot_url: str = ""
    warnings: Sequence[str] = ()


def session_location(session: LabletSession) -> SessionLocation | None:
    readers = Extension.installed().session_location
    return next((place for reader in readers if (place := reader(session))), None)
