"""Reservations: create, renew and end. A session's transitions create and end its reservations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, Value, When
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.resources import RESOURCE_NAMES, Amounts
from lcm.models import Kernel, LabletSession, Priority
from lcm.models.definitions import Placement
from lcm.services.changelog import log_change
from lcm.services.validation import clean_model, require_reason
from scheduling.capacity.tick_trigger import trigger_tick
from scheduling.models import ACTIVE_PHASES, EndedPart, Phase, Pool, Reservation, ReservationPart, Slot
from scheduling.selectors.lead_time import queue_entry_time
from scheduling.services.pool_choice import choose_pool
from scheduling.services.port_allocation import release_ports

DEFAULT_TTL = 1200
MAX_TTL = 86_400


def create_reservation(
    *,
    holder: str,
    resources: Mapping[str, Decimal],
    pool: str = "",
    system: str = "",
    ttl: int = DEFAULT_TTL,
    priority: int = Priority.NORMAL,
    actor: Actor,
    now: datetime,
) -> Reservation:
    """Reserve capacity without a session; the holder must renew it."""
    _check_ttl(ttl)
    if not holder.strip():
        raise InvalidInput({"holder": _("Enter a holder.")})
    requested = _checked(resources)
    found = choose_pool(name=pool, system=system, requested=requested, now=now)
    reservation = Reservation(
        pool=found,
        holder=holder,
        priority=priority,
        ttl_seconds=ttl,
        created_at=now,
        expires_at=now + timedelta(seconds=ttl),
        **vars(requested),
    )
    clean_model(reservation)
    with transaction.atomic():
        reservation.save(force_insert=True)
        message = f"{reservation} created by {holder} in {found}"
        log_change(reservation, actor=actor, event="reservation.created", message=message, now=now)
        trigger_tick(found)
    return reservation


def renew_reservation(*, reservation: Reservation, ttl: int | None = None, now: datetime) -> Reservation:
    """Set a reservation to expire after `ttl` seconds or its own TTL; raise if it has ended."""
    if ttl is not None:
        _check_ttl(ttl)
    if reservation.ttl_seconds is None:
        text = _("Reservation %(id)s belongs to a session and needs no renewal.")
        raise StateConflict(text % {"id": reservation.short_id})
    until = now + timedelta(seconds=reservation.ttl_seconds if ttl is None else ttl)
    renewed = Reservation.objects.filter(
        pk=reservation.pk, phase__in=ACTIVE_PHASES, expires_at__gt=now
    ).update(expires_at=until)
    if not renewed:
        reservation.refresh_from_db()
        text = (
            _("Reservation %(id)s has expired and cannot be renewed.")
            if reservation.phase in ACTIVE_PHASES
            else _("Reservation %(id)s is %(phase)s and cannot be renewed.")
        ) % {"id": reservation.short_id, "phase": reservation.get_phase_display().lower()}
        raise StateConflict(text, details={"phase": reservation.phase})
    reservation.expires_at = until
    return reservation


def release_reservation(*, reservation: Reservation, actor: Actor, now: datetime) -> Reservation:
    """Release a reservation; idempotent."""
    _reject_for_session(reservation)
    with transaction.atomic():
        ended = end_reservations([reservation.pk], ready=Phase.RELEASED, pending=Phase.CANCELLED, now=now)
        if ended:
            message = f"{reservation} released"
            log_change(reservation, actor=actor, event="reservation.released", message=message, now=now)
    reservation.refresh_from_db()
    return reservation


def cancel_reservation(*, reservation: Reservation, actor: Actor, now: datetime, reason: str) -> Reservation:
    """Cancel a reservation on behalf of an operator."""
    require_reason(reason)
    _reject_for_session(reservation)
    with transaction.atomic():
        ended = end_reservations(
            [reservation.pk], ready=Phase.CANCELLED, pending=Phase.CANCELLED, now=now, reason=reason
        )
        if not ended:
            reservation.refresh_from_db()
            text = _("Reservation %(id)s is %(phase)s already.")
            phase = reservation.get_phase_display().lower()
            raise StateConflict(text % {"id": reservation.short_id, "phase": phase})
        message = f"{reservation} cancelled"
        log_change(
            reservation, actor=actor, event="reservation.cancelled", message=message, reason=reason, now=now
        )
    reservation.refresh_from_db()
    return reservation


def reserve_for_session(*, session: LabletSession, now: datetime) -> Reservation:
    """Create the reservation of a session's current attempt, in its pool."""
    pool = choose_pool_for_session(session, name=session.pool, now=now)
    if session.pool != pool.name:
        session.pool = pool.name
        LabletSession.objects.filter(pk=session.pk).update(pool=pool.name)
    return new_session_reservation(session, pool)


def choose_pool_for_session(
    session: LabletSession, *, name: str, now: datetime, kernels: Iterable[Kernel] | None = None
) -> Pool:
    """Return the named pool if it can hold the session, else raise; without a name the best pool.

    `kernels`: the kernels of a session that is not saved.
    """
    return choose_pool(
        name=name,
        system=session.definition.system,
        requested=_request_per_slot(session, session.kernels.all() if kernels is None else kernels),
        ports=len(session.revision.port_template),
        preemptible=session.definition.preemptible,
        labels=session.definition.slot_labels,
        now=now,
    )


def draft_reservation(session: LabletSession, kernels: Iterable[Kernel], *, now: datetime) -> Reservation:
    """Return the reservation that a request would create, unsaved; raise if no pool can hold it."""
    return _claim(session, choose_pool_for_session(session, name=session.pool, kernels=kernels, now=now))


def new_session_reservation(session: LabletSession, pool: Pool) -> Reservation:
    reservation = _claim(session, pool)
    reservation.save(force_insert=True)
    trigger_tick(pool)
    return reservation


def _request_per_slot(session: LabletSession, kernels: Iterable[Kernel]) -> Amounts:
    """Return the amounts one slot must hold: the whole session, or the largest kernel if it may spread."""
    if session.definition.placement == Placement.TOGETHER:
        return session.revision.amounts
    return Amounts.most(kernel.amounts for kernel in kernels)


def requeue_reservations(*, session_ids: Sequence[UUID], now: datetime) -> None:
    """Create new reservations for requeued sessions."""
    rows = LabletSession.objects.select_related("revision", "definition").filter(pk__in=session_ids)
    pools = {pool.name: pool for pool in Pool.objects.filter(name__in={row.pool for row in rows})}
    Reservation.objects.bulk_create([_claim(row, pools[row.pool]) for row in rows if row.pool in pools])
    for pool in pools.values():
        trigger_tick(pool)


def end_session_reservations(
    *, session_ids: Sequence[UUID], pending: Phase, now: datetime, reason: str = ""
) -> int:
    """End reservations of sessions whose labs were removed or never started; release slots and ports."""
    active = Reservation.objects.filter(session_id__in=session_ids, phase__in=ACTIVE_PHASES)
    keys = list(active.values_list("pk", flat=True))
    ended = end_reservations(keys, ready=Phase.RELEASED, pending=pending, now=now, reason=reason)
    release_ports(session_ids, now=now)
    return ended


def end_reservations(
    keys: Iterable[UUID], *, ready: Phase, pending: Phase, now: datetime, reason: str = "", **conditions: Any
) -> int:
    """End active reservations, each once; the lease is released with its row.

    `conditions` must still hold when the reservations end.
    """
    with transaction.atomic():
        locked = Reservation.objects.select_for_update().filter(
            pk__in=list(keys), phase__in=ACTIVE_PHASES, **conditions
        )
        rows = list(locked.order_by("pk").values_list("pk", "slot_id", "phase", "pool_id", "spread"))
        if not rows:
            return 0
        ended = [row[0] for row in rows]
        Reservation.objects.filter(pk__in=ended).update(
            phase=Case(When(phase=Phase.READY, then=Value(ready)), default=Value(pending)),
            released_at=now,
            reason=reason[:500],
            held_slot=None,
            held_until=None,
        )
        spread = {key for key, _, phase, _, is_spread in rows if is_spread and phase == Phase.READY}
        held = [slot_id for key, slot_id, phase, *_ in rows if phase == Phase.READY and key not in spread]
        _release_leases([*held, *_end_parts(spread)], now)
        for pool_id in {row[3] for row in rows}:
            trigger_tick(Pool(pk=pool_id))
    return len(rows)


def _end_parts(keys: set[UUID]) -> list[UUID]:
    """End the parts of spread reservations, one lease each."""
    if not keys:
        return []
    parts = ReservationPart.objects.filter(reservation_id__in=keys)
    rows = list(parts.values_list("reservation_id", "slot_id"))
    EndedPart.objects.bulk_create(EndedPart(reservation_id=key, slot_id=slot_id) for key, slot_id in rows)
    parts.delete()
    return [slot_id for _, slot_id in rows]


def _release_leases(slot_ids: list[UUID], now: datetime) -> None:
    """Decrement the lease counts; a slot without leases is idle from now on."""
    by_count: dict[int, list[UUID]] = {}
    for slot_id, count in Counter(slot_ids).items():
        by_count.setdefault(count, []).append(slot_id)
    # Lock in the same order as a placement, so that the two do not deadlock.
    list(Slot.objects.select_for_update().filter(pk__in=set(slot_ids)).order_by("pk").values_list("pk"))
    for count, ids in by_count.items():
        Slot.objects.filter(pk__in=ids).update(
            lease_count=F("lease_count") - count,
            idle_since=Case(When(lease_count__lte=count, then=Value(now)), default=F("idle_since")),
        )


def _claim(session: LabletSession, pool: Pool) -> Reservation:
    """Create a reservation as old as its session, so that a requeued session keeps its position."""
    return Reservation(
        pool=pool,
        session=session,
        priority=session.priority,
        preemptible=session.definition.preemptible,
        attempt=session.attempt,
        port_names=[port["name"] for port in session.revision.port_template],
        created_at=session.created_at,
        joins_queue_at=queue_entry_time(session, pool),
        spread=session.definition.placement == Placement.SPREAD,
        labels=session.definition.slot_labels,
        **session.revision.amounts.as_dict(),
    )


def _check_ttl(ttl: int) -> None:
    if not 1 <= ttl <= MAX_TTL:
        text = _("The TTL must be between 1 and %(most)s seconds.") % {"most": MAX_TTL}
        raise InvalidInput({"ttl": text})


def _checked(resources: Mapping[str, Decimal]) -> Amounts:
    unknown = set(resources) - set(RESOURCE_NAMES)
    if unknown:
        raise InvalidInput({f"resources.{name}": _("This is not a resource.") for name in sorted(unknown)})
    wrong = [name for name, value in resources.items() if not value.is_finite() or value < 0]
    if wrong:
        raise InvalidInput({f"resources.{name}": _("Must be 0 or more.") for name in wrong})
    if not any(resources.values()):
        raise InvalidInput({"resources": _("Request at least one resource.")})
    return Amounts.read(resources)


def _reject_for_session(reservation: Reservation) -> None:
    if reservation.session_id is not None:
        text = _("Reservation %(id)s belongs to a session: cancel the session instead.")
        raise StateConflict(text % {"id": reservation.short_id})
