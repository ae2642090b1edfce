"""Step 1: expire reservations that were not renewed."""

from __future__ import annotations

from scheduling.capacity.steps.context import TickContext
from scheduling.models import ACTIVE_PHASES, Phase, Reservation
from scheduling.services.reservations import end_reservations


def expire(tick: TickContext) -> None:
    """Expire reservations whose holder stopped renewing."""
    overdue = Reservation.objects.filter(pool=tick.pool, phase__in=ACTIVE_PHASES, expires_at__lte=tick.now)
    keys = list(overdue.values_list("pk", flat=True)[:5_000])
    if keys:
        ended = end_reservations(
            keys,
            ready=Phase.EXPIRED,
            pending=Phase.EXPIRED,
            now=tick.now,
            reason="not renewed in time",
            expires_at__lte=tick.now,
        )
        tick.count("expired", ended)
