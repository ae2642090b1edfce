"""Reconciliation of slots with the instances of the provider, with a deadline for each state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction

from lcm.domain.storable_text import remove_unstorable
from scheduling.capacity.launcher import (
    abandon_attempt,
    backoff,
    count_failure,
    record_launch,
    record_worker_failure,
    reset_failures,
)
from scheduling.capacity.runtimes.base import (
    ORPHAN_GRACE,
    Category,
    Health,
    Instance,
    InstanceState,
    Interruption,
    RuntimeAdapter,
    RuntimeFailure,
)
from scheduling.capacity.silent_workers import (
    check_silent_worker,
    is_pool_unreachable,
    is_silent,
    record_lost_heartbeat,
)
from scheduling.coordination.leases import HeldLease, lease
from scheduling.models import AttemptOutcome, LaunchAttempt, Pool, Slot, SlotState
from scheduling.services.lost_slots import fail_sessions_on_slot
from scheduling.services.pools import stop_pool
from scheduling.services.slots import move_slot, record_interruption

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=10)
PROBES_AT_ONCE = 32


@dataclass
class ReconcileRun:
    """One reconciliation of a pool: its slots and the instances tagged for it."""

    pool: Pool
    runtime: RuntimeAdapter
    now: datetime
    instances: dict[str, Instance]
    errors: list[str] = field(default_factory=list)

    def instance_of(self, slot: Slot) -> Instance | None:
        instance = self.instances.get(slot.instance_id) if slot.instance_id else None
        return instance if instance and instance.state != InstanceState.GONE else None


def reconcile_pool(pool: Pool, runtime: RuntimeAdapter, clock: Callable[[], datetime]) -> ReconcileRun | None:
    """Reconcile a pool once; None if another process holds the lease. A failing slot does not stop the
    others."""
    with lease(f"reconcile:{pool.pk}", length=LEASE) as hold:
        if hold is None:
            return None
        record_notices(pool, runtime, clock())
        # Read the slots before the instances: an instance launched in between must not count as vanished.
        slots = list(Slot.objects.select_related("pool").filter(pool=pool).exclude(state=SlotState.EMPTY))
        try:
            instances = {instance.id: instance for instance in runtime.describe()}
        except Exception as error:
            _handle_refusal("describe_failed", pool, error, clock())
            run = ReconcileRun(pool, runtime, clock(), {}, [str(error)])
            _for_each(run, slots, hold, partial(_end_overdue, run))
            return run
        run = ReconcileRun(pool, runtime, clock(), instances)
        # Probes of workers that do not respond take time, so handle the slots without a probe first.
        binding = [slot for slot in slots if slot.state == SlotState.BINDING]
        others = [slot for slot in slots if slot.state != SlotState.BINDING]
        if _for_each(run, others, hold, partial(_reconcile_slot, run)) and hold.is_held():
            collect_orphans(run)
            silent = [slot for slot in others if is_silent(slot, run.now)]
            health = _probe_all(run, [*binding, *silent], hold)
            _for_each(run, binding, hold, lambda slot: _reconcile_binding(run, slot, health.get(slot.pk)))
            _check_silent(run, silent, health, hold)
        return run


def _for_each(run: ReconcileRun, slots: list[Slot], hold: HeldLease, work: Callable[[Slot], None]) -> bool:
    """Handle slot after slot and isolate failures; False if another process took the lease.

    The deadline of a failing slot still applies.
    """
    for slot in slots:
        if not hold.renew():
            return False
        try:
            work(slot)
        except Exception as error:
            logger.exception("reconcile_failed", extra={"slot": slot.name})
            run.errors.append(f"{slot}: {error}")
            with suppress(Exception):
                slot.refresh_from_db(fields=["state", "state_deadline", "lease_count"])
                _end_overdue(run, slot)
    return True


def record_notices(pool: Pool, runtime: RuntimeAdapter, now: datetime) -> None:
    """Record each interruption notice, then acknowledge it. A notice that fails is received again."""
    try:
        for notice in runtime.interruptions():
            try:
                _record_notice(notice, now)
            except Exception as error:
                _warn("notice_failed", pool, error)
    except Exception as error:
        _warn("notices_failed", pool, error)


def _record_notice(notice: Interruption, now: datetime) -> None:
    # Search all pools, since pools may share a queue.
    slot = Slot.objects.select_related("pool").filter(instance_id=notice.instance_id).first()
    if slot is not None:
        record_interruption(slot=slot, deadline=notice.deadline, now=now)
    # An unknown instance may belong to a launch that is not recorded yet. The notice is received again.
    if slot is not None or notice.deadline <= now:
        notice.acknowledge()


def collect_orphans(run: ReconcileRun) -> None:
    """Terminate this installation's instances without slot or open attempt, after a grace period."""
    if not run.runtime.launches:
        return
    tag_own_instances(run)
    # Read open attempts before slots: a launch recorded in between is then in at least one of the two.
    awaited = set(
        LaunchAttempt.objects.filter(slot__pool=run.pool, outcome=AttemptOutcome.OPEN).values_list(
            "token", flat=True
        )
    )
    owned = set(
        Slot.objects.filter(pool=run.pool).exclude(instance_id="").values_list("instance_id", flat=True)
    )
    for instance in run.instances.values():
        known = instance.id in owned or instance.token in awaited
        is_old = instance.launched_at is None or instance.launched_at <= run.now - ORPHAN_GRACE
        is_ending = instance.state in (InstanceState.STOPPING, InstanceState.GONE)
        is_orphan = instance.claimed and not known and is_old and not is_ending
        if is_orphan and not _terminate(run, instance.id):
            logger.warning("orphan_terminated", extra={"pool": run.pool.name, "instance": instance.id})


def tag_own_instances(run: ReconcileRun) -> None:
    """Tag untagged instances that an attempt or slot of this installation knows.

    Other untagged instances may belong to another installation. If the provider refuses, the pass continues
    and the next pass tries again.
    """
    unclaimed = [instance for instance in run.instances.values() if not instance.claimed]
    if not unclaimed:
        return
    tokens = LaunchAttempt.objects.filter(slot__pool=run.pool, token__in=[each.token for each in unclaimed])
    slots = Slot.objects.filter(pool=run.pool, instance_id__in=[each.id for each in unclaimed])
    launched = set(tokens.values_list("token", flat=True))
    owned = set(slots.values_list("instance_id", flat=True))
    own = [each.id for each in unclaimed if each.token in launched or each.id in owned]
    if own:
        try:
            run.runtime.claim(own)
        except RuntimeFailure as error:
            run.errors.append(str(error))
            _warn("claim_failed", run.pool, error)


def _probe_all(run: ReconcileRun, slots: list[Slot], hold: HeldLease) -> dict[object, Health]:
    """Probe workers that are about to become READY, several at a time, and keep the lease meanwhile."""
    probes = [(slot.pk, instance) for slot in slots if (instance := run.instance_of(slot)) is not None]
    health: dict[object, Health] = {}
    with ThreadPoolExecutor(PROBES_AT_ONCE) as threads:
        for start in range(0, len(probes), PROBES_AT_ONCE):
            keys, instances = zip(*probes[start : start + PROBES_AT_ONCE], strict=True)
            health |= zip(keys, threads.map(partial(_probe, run), instances), strict=True)
            if not hold.renew():
                break
    return health


def _probe(run: ReconcileRun, instance: Instance) -> Health:
    try:
        return run.runtime.probe(instance)
    except Exception as error:
        return Health(False, f"{instance.id} cannot be probed: {type(error).__name__}: {error}")


def _check_silent(
    run: ReconcileRun, slots: list[Slot], health: Mapping[object, Health], hold: HeldLease
) -> None:
    unreachable = is_pool_unreachable([health[slot.pk] for slot in slots if slot.pk in health])
    if unreachable:
        logger.warning("silent_workers_unreachable", extra={"pool": run.pool.name, "slots": len(slots)})

    def check_worker(slot: Slot) -> None:
        gave_up = check_silent_worker(slot, health.get(slot.pk), pool_unreachable=unreachable, now=run.now)
        if gave_up and not run.runtime.launches:
            record_worker_failure(run.pool, slot.instance_id, failed_at=run.now)

    _for_each(run, slots, hold, check_worker)


def _reconcile_slot(run: ReconcileRun, slot: Slot) -> None:
    match SlotState(slot.state):
        case SlotState.LAUNCHING:
            _reconcile_launching(run, slot)
        case SlotState.BOOTING:
            _reconcile_booting(run, slot)
        case SlotState.READY:
            record_lost_heartbeat(slot, run.now)
            _expect_instance(run, slot)
        case SlotState.DRAINING:
            _reconcile_draining(run, slot)
        case SlotState.TERMINATING:
            _reconcile_terminating(run, slot)
        case SlotState.ERROR:
            _end_overdue(run, slot)


def _end_overdue(run: ReconcileRun, slot: Slot, detail: str = "") -> None:
    """End a slot that is past the deadline of its state, whatever the provider reports."""
    if slot.state_deadline is None or slot.state_deadline > run.now:
        return
    match SlotState(slot.state):
        case SlotState.LAUNCHING:
            if (attempt := _open_attempt(slot)) is not None:
                abandon_attempt(attempt, now=run.now, reason="no response to the launch request in time")
        case SlotState.BOOTING:
            _end(run, slot, SlotState.TERMINATING, "did not boot in time")
        case SlotState.BINDING:
            reason = f"its worker did not respond in time{f': {detail}' if detail else ''}"
            _end(run, slot, SlotState.TERMINATING, reason)
        case SlotState.DRAINING if not slot.lease_count:
            reason = "it has no lease and did not drain in time"
            move_slot(slot=slot, to=SlotState.TERMINATING, now=run.now, reason=reason, unleased=True)
        case SlotState.TERMINATING:
            until = run.now + backoff(1)
            text = f"its instance did not terminate in time{f': {detail}' if detail else ''}"
            reason = remove_unstorable(text)[:500]
            move_slot(slot=slot, to=SlotState.ERROR, now=run.now, reason=reason, state_deadline=until)
        case SlotState.ERROR:
            if slot.lease_count:
                fail_sessions_on_slot(slot=slot, reason="its worker failed", now=run.now)
            move_slot(slot=slot, to=SlotState.EMPTY, now=run.now, reason="retry is due")


def _end(run: ReconcileRun, slot: Slot, to: SlotState, reason: str) -> None:
    """End a slot. Before READY this counts as a failed launch, unless the instance was interrupted.

    Listed workers are not launched, so trying them again costs nothing; they come after the others. Workers
    that are no longer listed are not tried.
    """
    is_new = slot.state in (SlotState.BOOTING, SlotState.BINDING) and slot.interruption_deadline is None
    worker = slot.instance_id
    with transaction.atomic():
        moved = move_slot(slot=slot, to=to, now=run.now, reason=reason)
        if moved and is_new and run.runtime.launches:
            count_failure(run.pool, run.now, reason=reason)
        elif moved and is_new and to != SlotState.EMPTY:
            record_worker_failure(run.pool, worker, failed_at=run.now)


def _open_attempt(slot: Slot) -> LaunchAttempt | None:
    attempt = slot.attempts.filter(outcome=AttemptOutcome.OPEN).first()
    if attempt is not None:
        attempt.slot = slot
    return attempt


def _reconcile_launching(run: ReconcileRun, slot: Slot) -> None:
    """Adopt the instance of a launch whose response was lost; without one, give up at the deadline."""
    attempt = _open_attempt(slot)
    if attempt is None:
        move_slot(slot=slot, to=SlotState.EMPTY, now=run.now, reason="no open attempt")
        return
    for instance in run.instances.values():
        if instance.token == attempt.token and instance.state != InstanceState.GONE:
            record_launch(attempt, instance, now=run.now)
            return
    _end_overdue(run, slot)


def _reconcile_booting(run: ReconcileRun, slot: Slot) -> None:
    instance = _expect_instance(run, slot)
    if instance is None:
        return
    if instance.state == InstanceState.RUNNING:
        move_slot(slot=slot, to=SlotState.BINDING, now=run.now, endpoint=instance.endpoint)
    else:
        _end_overdue(run, slot)


def _reconcile_binding(run: ReconcileRun, slot: Slot, health: Health | None) -> None:
    if _expect_instance(run, slot) is None:
        return
    if health and health.ready:
        fields: dict[str, Any] = {
            "idle_since": run.now,
            "version": remove_unstorable(health.version)[:60],
            "last_heartbeat": run.now,
        }
        with transaction.atomic():
            if move_slot(slot=slot, to=SlotState.READY, now=run.now, **fields):
                reset_failures(run.pool, run.now)
                record_worker_failure(run.pool, slot.instance_id, failed_at=None)
    else:
        _end_overdue(run, slot, health.reason if health else "")


def _reconcile_draining(run: ReconcileRun, slot: Slot) -> None:
    """Terminate a draining slot once its leases are released or its instance is interrupted."""
    record_lost_heartbeat(slot, run.now)
    if _expect_instance(run, slot) is not None and slot.lease_count == 0:
        move_slot(slot=slot, to=SlotState.TERMINATING, now=run.now, reason=slot.reason, unleased=True)


def _reconcile_terminating(run: ReconcileRun, slot: Slot) -> None:
    """Request termination at every pass until the instance is gone."""
    if slot.lease_count:
        fail_sessions_on_slot(slot=slot, reason="its worker was terminated", now=run.now)
    instance = run.instance_of(slot)
    if instance is None or not run.runtime.launches:
        move_slot(slot=slot, to=SlotState.EMPTY, now=run.now, worker_stays=instance is not None)
        return
    stopping = instance.state == InstanceState.STOPPING
    _end_overdue(run, slot, "" if stopping else _terminate(run, instance.id))


def _expect_instance(run: ReconcileRun, slot: Slot) -> Instance | None:
    """Return the slot's instance; end the slot if the instance is missing or stopped."""
    instance = run.instance_of(slot)
    if instance is None:
        if run.now >= slot.last_state_change + run.runtime.listing_delay:
            fail_sessions_on_slot(slot=slot, reason="its worker vanished", now=run.now)
            slot.refresh_from_db()
            _end(run, slot, SlotState.EMPTY, "its instance vanished")
    elif instance.state in (InstanceState.STOPPING, InstanceState.STOPPED):
        fail_sessions_on_slot(slot=slot, reason="its worker was stopped", now=run.now)
        _end(run, slot, SlotState.TERMINATING, "its instance was stopped")
        return None
    return instance


def _terminate(run: ReconcileRun, instance_id: str) -> str:
    """Request termination; return the reason if the provider refused."""
    try:
        run.runtime.terminate(instance_id)
    except RuntimeFailure as error:
        run.errors.append(f"{instance_id}: {error}")
        _handle_refusal("terminate_failed", run.pool, error, run.now)
        return str(error)
    return ""


def _handle_refusal(event: str, pool: Pool, error: Exception, now: datetime) -> None:
    """Log a failed call; after a permanent failure stop the pool, which LCM cannot reconcile."""
    _warn(event, pool, error)
    if isinstance(error, RuntimeFailure) and error.category == Category.CONFIGURATION:
        stop_pool(pool=pool, reason=str(error), now=now)


def _warn(event: str, pool: Pool, error: Exception) -> None:
    """Log a runtime failure as a warning, and any other exception with its traceback."""
    trace = None if isinstance(error, RuntimeFailure) else error
    logger.warning(event, extra={"pool": pool.name, "error": str(error)}, exc_info=trace)
