"""Labs of sessions as the controllers find them on their workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from scheduling.models import Phase, Reservation, SessionLab, Slot


def save_labs(*, slot: Slot, labs: Sequence[Mapping[str, Any]], observed_at: datetime) -> None:
    """Replace the labs of a slot; labs of sessions that are not on the slot are ignored."""
    by_session = {lab["session"]: lab for lab in labs}
    on_slot = Reservation.objects.filter(
        Q(slot=slot) | Q(parts__slot=slot), phase=Phase.READY, session_id__in=by_session
    )
    known = set(on_slot.values_list("session_id", flat=True))
    rows = [
        SessionLab(
            session_id=session_id,
            slot=slot,
            attempt=lab["attempt"],
            lab=lab["lab"],
            node_states=lab["nodes"],
            observed_at=observed_at,
        )
        for session_id, lab in by_session.items()
        if session_id in known
    ]
    with transaction.atomic():
        SessionLab.objects.filter(slot=slot).exclude(session_id__in=known).delete()
        SessionLab.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["session", "slot"],
            update_fields=["attempt", "lab", "node_states", "observed_at"],
        )
