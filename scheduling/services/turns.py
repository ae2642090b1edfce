"""When the turns of those who wait come, after their pool's scheduler has changed."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction

from lcm.bulk import update_each
from scheduling.models import Phase, Pool, Reservation
from scheduling.turns import lead_of


def tell_turns(pool: Pool) -> None:
    """Anew for all sessions that wait there; locked in the order in which those that end them lock them."""
    lead = lead_of(pool)
    with transaction.atomic():
        waiting = Reservation.objects.filter(pool=pool, phase=Phase.PENDING).exclude(session=None)
        list(waiting.select_for_update().order_by("pk").values_list("pk"))
        changed: list[tuple[UUID, datetime | None]] = []
        for key, told, created, starts in waiting.values_list(
            "pk", "turn_at", "created_at", "session__starts_at"
        ):
            turn = starts - lead if starts - lead > created else None
            if turn != told:
                changed.append((key, turn))
        update_each(Reservation, ["turn_at"], changed)
