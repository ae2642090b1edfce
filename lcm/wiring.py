"""What `lcm` itself does when sessions move: receivers of its own signals."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.dispatch import receiver

from lcm.lifecycle import ON_A_SLOT, SessionStatus
from lcm.services.feed import note_sessions
from lcm.signals import sessions_moved


@receiver(sessions_moved)
def feed(
    sender: Any, session_ids: list[UUID], old: SessionStatus, new: SessionStatus, now: datetime, **kwargs: Any
) -> None:
    """Controllers hear of sessions that are on a slot, come to one or leave it."""
    if old in ON_A_SLOT or new in ON_A_SLOT:
        note_sessions(session_ids, now=now)
