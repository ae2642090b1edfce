"""Slots: state transitions, each by a compare-and-set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from lcm.domain.actors import SYSTEM, Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.storable_text import remove_unstorable
from lcm.events.change_feed import append_slot_changes
from lcm.models import ChangeLog
from lcm.models.definitions import label_map
from lcm.services.changelog import build_entry, log_change, log_changes
from lcm.services.validation import require_reason
from scheduling.capacity.tick_trigger import trigger_tick
from scheduling.models import DRAINABLE, LIVE, AttemptOutcome, LaunchAttempt, PortAllocation, Slot, SlotState
from scheduling.services.worker_keys import revoke_worker_keys

# Allowed transitions; ERROR and EMPTY follow when an instance fails or vanishes.
TRANSITIONS: dict[SlotState, tuple[SlotState, ...]] = {
    SlotState.EMPTY: (SlotState.LAUNCHING,),
    SlotState.LAUNCHING: (SlotState.BOOTING, SlotState.TERMINATING, SlotState.EMPTY, SlotState.ERROR),
    SlotState.BOOTING: (SlotState.BINDING, SlotState.DRAINING, SlotState.TERMINATING, SlotState.EMPTY),
    SlotState.BINDING: (SlotState.READY, SlotState.DRAINING, SlotState.TERMINATING, SlotState.EMPTY),
    SlotState.READY: (SlotState.DRAINING, SlotState.TERMINATING, SlotState.EMPTY),
    SlotState.DRAINING: (SlotState.READY, SlotState.TERMINATING, SlotState.EMPTY),
    SlotState.TERMINATING: (SlotState.EMPTY, SlotState.ERROR),
    SlotState.ERROR: (SlotState.EMPTY,),
}
# The event that the change log records when a slot reaches a state.
STATE_EVENTS: dict[SlotState, str] = {
    SlotState.EMPTY: "slot.emptied",
    SlotState.LAUNCHING: "slot.launching",
    SlotState.BOOTING: "slot.launched",
    SlotState.BINDING: "slot.booted",
    SlotState.READY: "slot.ready",
    SlotState.DRAINING: "slot.draining",
    SlotState.TERMINATING: "slot.terminating",
    SlotState.ERROR: "slot.failed",
}
# The event of one step that differs from other ways to its state.
STEP_EVENTS = {(SlotState.DRAINING, SlotState.READY): "slot.drain_cancelled"}
# Values written after a heartbeat or a successful probe.
PROBE_RESET: dict[str, Any] = {"unanswered_since": None, "failed_probes": 0, "failed_together": False}
INSTANCE_RESET: dict[str, Any] = {
    "instance_id": "",
    "endpoint": "",
    "version": "",
    "offering": "",
    "is_spot": False,
    "labels": {},
    "cordoned": False,
    "idle_since": None,
    "interruption_deadline": None,
    "last_heartbeat": None,
    "heartbeat_lost_at": None,
    **PROBE_RESET,
    "reported_capacity": None,
}


def move_slot(
    *,
    slot: Slot,
    to: SlotState,
    now: datetime,
    reason: str = "",
    actor: Actor = SYSTEM,
    unleased: bool = False,
    worker_stays: bool = False,
    condition: Mapping[str, Any] | None = None,
    **fields: Any,
) -> bool:
    """Move a slot, set its deadline and log it; False if its state changed meanwhile.

    With `unleased`, and always to EMPTY, a slot with a lease does not move. It must have
    the values in `condition`.
    The ports of a terminated instance are deleted, leaked ones too; with `worker_stays` they stay reserved.
    """
    old = SlotState(slot.state)
    if to not in TRANSITIONS[old]:
        text = _("%(slot)s is %(state)s and cannot become %(new)s.")
        raise StateConflict(text % {"slot": slot, "state": old.label.lower(), "new": to.label.lower()})
    timeout = slot.pool.timeout_of(to)
    fields.setdefault("state_deadline", now + timeout if timeout else None)
    is_terminated = to == SlotState.EMPTY and bool(slot.instance_id) and not worker_stays
    if to == SlotState.EMPTY:
        fields = {**INSTANCE_RESET, **fields}
    fields |= {"state": to, "reason": remove_unstorable(reason)[:500], "last_state_change": now}
    guard = {**(condition or {}), **({"lease_count": 0} if unleased or to == SlotState.EMPTY else {})}
    with transaction.atomic():
        if not Slot.objects.filter(pk=slot.pk, state=old, **guard).update(**fields):
            return False
        for name, value in fields.items():
            setattr(slot, name, value)
        if old == SlotState.LAUNCHING and to != SlotState.BOOTING:
            _close_open_attempt(slot, now=now, reason=slot.reason)
        if is_terminated:
            PortAllocation.objects.filter(slot=slot).delete()
        log_changes([_step(slot, old, to, actor, slot.reason, now)])
        append_slot_changes([(slot.pk, slot.pool.name)], now=now)
        if to == SlotState.EMPTY:
            revoke_worker_keys(slot=slot, now=now)
        if to in (SlotState.READY, SlotState.EMPTY):
            trigger_tick(slot.pool)
    return True


def move_slots(
    *, slots: Sequence[Slot], old: SlotState, to: SlotState, now: datetime, reason: str = "", **fields: Any
) -> list[Slot]:
    """Move many slots of a pool; slots whose state changed meanwhile are skipped."""
    if to not in TRANSITIONS[old] or old == SlotState.LAUNCHING or to == SlotState.EMPTY:
        raise ValueError(f"{old} to {to} is not a step for many slots at once")
    with transaction.atomic():
        locked = Slot.objects.select_for_update().filter(pk__among=[slot.pk for slot in slots], state=old)
        moved_ids = set(locked.order_by("pk").values_list("pk", flat=True))
        moved = [slot for slot in slots if slot.pk in moved_ids]
        if not moved:
            return []
        timeout = moved[0].pool.timeout_of(to)
        fields.setdefault("state_deadline", now + timeout if timeout else None)
        fields |= {"state": to, "reason": reason[:500], "last_state_change": now}
        Slot.objects.filter(pk__among=moved_ids).update(**fields)
        for slot in moved:
            for name, value in fields.items():
                setattr(slot, name, value)
        log_changes(_step(slot, old, to, SYSTEM, reason, now) for slot in moved)
    return moved


def cordon_slot(*, slot: Slot, cordoned: bool, reason: str, actor: Actor, now: datetime) -> Slot:
    """Cordon or uncordon a slot; its sessions stay."""
    require_reason(reason)
    word = "cordoned" if cordoned else "uncordoned"
    with transaction.atomic():
        if not Slot.objects.filter(pk=slot.pk, cordoned=not cordoned, state__in=LIVE).update(
            cordoned=cordoned
        ):
            if cordoned:
                raise _conflict(_("%(slot)s is %(state)s or cordoned already."), slot)
            raise _conflict(_("%(slot)s is %(state)s or uncordoned already."), slot)
        slot.cordoned = cordoned
        log_change(slot, actor=actor, event=f"slot.{word}", message=f"{slot} {word}", reason=reason, now=now)
        trigger_tick(slot.pool)
    return slot


def label_slot(*, slot: Slot, labels: Mapping[str, str], reason: str, actor: Actor, now: datetime) -> Slot:
    """Set the labels of a worker; its sessions stay. The next worker of the slot has its own labels."""
    require_reason(reason)
    try:
        label_map(labels)
    except ValidationError as error:
        raise InvalidInput({"labels": error.messages}) from error
    with transaction.atomic():
        # Without the default ordering, which would lock the pool as well.
        fresh = Slot.objects.select_for_update().filter(pk=slot.pk, state__in=LIVE).order_by("pk").first()
        if fresh is None:
            raise _conflict(_("%(slot)s is %(state)s and has no worker to label."), slot)
        before, slot.labels = fresh.labels, dict(labels)
        if before != slot.labels:
            Slot.objects.filter(pk=slot.pk).update(labels=slot.labels)
            log_change(
                slot, actor=actor, event="slot.labelled", message=f"{slot} labelled", reason=reason,
                before={"labels": before}, after={"labels": slot.labels}, now=now,
            )  # fmt: skip
            trigger_tick(slot.pool)
    return slot


def drain_slot(*, slot: Slot, reason: str, actor: Actor, now: datetime) -> Slot:
    """Take a slot out of service once its leases have ended."""
    require_reason(reason)
    if slot.state not in DRAINABLE or not move_slot(
        slot=slot, to=SlotState.DRAINING, now=now, reason=reason, actor=actor
    ):
        raise _conflict(_("%(slot)s is %(state)s and cannot drain."), slot)
    return slot


def can_cancel_drain(slot: Slot) -> bool:
    """Return whether a draining slot can serve again: its worker was READY and still responds."""
    was_ready = slot.idle_since is not None
    responds = slot.heartbeat_lost_at is None and slot.unanswered_since is None
    return slot.state == SlotState.DRAINING and was_ready and responds and slot.interruption_deadline is None


def cancel_drain(*, slot: Slot, reason: str, actor: Actor, now: datetime) -> Slot:
    """Make a draining slot READY again; its idle time restarts, so the tick does not drain it at once."""
    require_reason(reason)
    condition = {
        "idle_since__isnull": False,
        "heartbeat_lost_at": None,
        "unanswered_since": None,
        "interruption_deadline": None,
    }
    if slot.state != SlotState.DRAINING or not move_slot(
        slot=slot,
        to=SlotState.READY,
        now=now,
        reason=reason,
        actor=actor,
        condition=condition,
        idle_since=now,
    ):
        slot.refresh_from_db()
        raise _conflict(_cancel_drain_problem(slot), slot)
    return slot


def _cancel_drain_problem(slot: Slot) -> str:
    """Return why the drain of a slot cannot be cancelled."""
    if slot.state != SlotState.DRAINING:
        return _("%(slot)s is %(state)s; only the drain of a draining slot can be cancelled.")
    if slot.interruption_deadline is not None:
        return _("%(slot)s has an interruption notice; its drain cannot be cancelled.")
    if slot.idle_since is None:
        return _("The worker of %(slot)s has never been ready; its drain cannot be cancelled.")
    return _("The worker of %(slot)s does not respond; its drain cannot be cancelled.")


def terminate_slot(*, slot: Slot, reason: str, actor: Actor, now: datetime) -> Slot:
    """Terminate the instance now; raise while sessions are on it."""
    require_reason(reason)
    if slot.lease_count:
        text = ngettext(
            "%(slot)s has %(count)s lease: drain it, or stop its sessions first.",
            "%(slot)s has %(count)s leases: drain it, or stop its sessions first.",
            slot.lease_count,
        )
        raise StateConflict(text % {"slot": slot, "count": f"{slot.lease_count:,}"})
    if slot.state not in LIVE or not move_slot(
        slot=slot, to=SlotState.TERMINATING, now=now, reason=reason, actor=actor, unleased=True
    ):
        raise _conflict(_("%(slot)s is %(state)s and cannot be terminated."), slot)
    return slot


def retry_slot(*, slot: Slot, reason: str, actor: Actor, now: datetime) -> Slot:
    """Make a slot in error available at once."""
    require_reason(reason)
    with transaction.atomic():
        if slot.state != SlotState.ERROR or not move_slot(
            slot=slot, to=SlotState.EMPTY, now=now, reason=reason, actor=actor
        ):
            slot.refresh_from_db(fields=["state", "lease_count"])
            if slot.state == SlotState.ERROR and slot.lease_count:
                text = ngettext(
                    "%(slot)s still has %(count)s lease: stop its sessions first.",
                    "%(slot)s still has %(count)s leases: stop its sessions first.",
                    slot.lease_count,
                )
                raise StateConflict(text % {"slot": slot, "count": f"{slot.lease_count:,}"})
            raise _conflict(_("%(slot)s is %(state)s; only a slot in error can be retried."), slot)
        pools = type(slot.pool).objects.filter(pk=slot.pool_id)
        pools.update(backoff_until=None, backoff_since=None, failures=0)
    return slot


def record_interruption(*, slot: Slot, deadline: datetime, now: datetime, actor: Actor = SYSTEM) -> bool:
    """Record that the instance will be interrupted; the tick acts on it."""
    with transaction.atomic():
        fresh = Slot.objects.filter(pk=slot.pk, state__in=LIVE, interruption_deadline=None)
        if not fresh.update(interruption_deadline=deadline):
            return False
        slot.interruption_deadline = deadline
        left = max(deadline - now, timedelta(0)).total_seconds()
        message = f"{slot} terminates in {left:.0f} s: interruption notice"
        log_change(slot, actor=actor, event="slot.interrupted", message=message, now=now)
        append_slot_changes([(slot.pk, slot.pool.name)], now=now)
        trigger_tick(slot.pool)
    return True


def _step(slot: Slot, old: SlotState, to: SlotState, actor: Actor, reason: str, now: datetime) -> ChangeLog:
    return build_entry(
        slot,
        actor=actor,
        event=STEP_EVENTS.get((old, to), STATE_EVENTS[to]),
        # The change log stays English; the labels are translated.
        message=f"{slot}: {old.capitalize()} → {to.capitalize()}",
        reason=reason,
        before={"state": old},
        after={"state": to},
        now=now,
    )


def _close_open_attempt(slot: Slot, *, now: datetime, reason: str) -> None:
    """Close the open attempt; an instance that still appears is an orphan."""
    LaunchAttempt.objects.filter(slot=slot, outcome=AttemptOutcome.OPEN).update(
        outcome=AttemptOutcome.LOST, finished_at=now, error=reason[:500]
    )


def _conflict(text: str, slot: Slot) -> StateConflict:
    """Return an error with the slot's current state as `%(state)s`."""
    state = SlotState(Slot.objects.values_list("state", flat=True).get(pk=slot.pk))
    return StateConflict(text % {"slot": slot, "state": state.label.lower()})
