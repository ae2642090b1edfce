"""Effects of session transitions on outcomes, leaked ports and port drift."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from lcm.domain.lifecycle import FINAL, SessionStatus
from observations.services.drift_reviews import close_drift
from observations.services.outcomes import mark_collected, settle_outcomes
from observations.services.port_drift import delete_leaked_ports


def update_observations(
    *,
    session_ids: Sequence[UUID],
    old: SessionStatus,
    new: SessionStatus,
    now: datetime,
    lab_removed: bool,
) -> None:
    """Count sessions that collect or stop while running; delete leaked ports when the lab is gone."""
    if new == SessionStatus.COLLECTING or (old, new) == (SessionStatus.RUNNING, SessionStatus.STOPPING):
        mark_collected(session_ids=session_ids, now=now)
    elif new == SessionStatus.STOPPING:
        settle_outcomes(session_ids=session_ids, now=now)
    elif lab_removed and new in FINAL:
        delete_leaked_ports(session_ids)
    if old == SessionStatus.STOPPING:
        close_drift(session_ids)
