"""Launches: perform the provider call of an open attempt and record its result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Case, F, Q, Value, When
from django.utils.crypto import salted_hmac

from lcm.domain.storable_text import remove_unstorable
from scheduling.capacity.offerings import open_offerings, refusals
from scheduling.capacity.runtimes.base import (
    CapacityRefused,
    Category,
    Instance,
    LaunchRequest,
    Market,
    Offering,
    QuotaExceeded,
    ResponseLost,
    RuntimeAdapter,
    RuntimeFailure,
)
from scheduling.capacity.runtimes.registry import runtime_for
from scheduling.capacity.runtimes.user_data import user_data
from scheduling.coordination.leases import HeldLease, lease
from scheduling.metrics import LAUNCHES
from scheduling.models import AttemptOutcome, LaunchAttempt, Pool, Slot, SlotState
from scheduling.services.pool_announcements import announce_backoff
from scheduling.services.pools import stop_pool
from scheduling.services.slots import move_slot

logger = logging.getLogger(__name__)

REFUSAL_BACKOFF = timedelta(minutes=3)
THROTTLE_BACKOFF = timedelta(seconds=15)
INITIAL_BACKOFF = timedelta(minutes=5)
MAX_BACKOFF = timedelta(minutes=30)
CALL_LEASE = timedelta(seconds=10)
# The task of an open attempt this old may be lost. Each redrive doubles the wait.
REDRIVE_AFTER = timedelta(seconds=30)
MAX_REDRIVE_WAIT = timedelta(minutes=10)

Clock = Callable[[], datetime]


def perform_launch(attempt_id: UUID, runtime: RuntimeAdapter, clock: Clock) -> None:
    """Launch an instance for an open attempt; do nothing if the attempt is closed."""
    with lease(f"launch:{attempt_id}", length=CALL_LEASE) as hold:
        if hold is None:
            return
        attempt = (
            LaunchAttempt.objects.select_related("slot__pool")
            .filter(pk=attempt_id, outcome=AttemptOutcome.OPEN, slot__state=SlotState.LAUNCHING)
            .first()
        )
        if attempt is None:
            return
        is_first_request = not attempt.offering
        if is_first_request and not may_launch(attempt.slot.pool, clock()):
            _cancel_attempt(attempt, clock())
        else:
            _try_offerings(attempt, runtime, clock, hold)


def may_launch(pool: Pool, now: datetime) -> bool:
    """Return False if the pool is disabled, stopped by its configuration, or backing off."""
    if not pool.enabled or pool.stopped_reason:
        return False
    return pool.backoff_until is None or pool.backoff_until <= now


def attempts_to_redrive(pool: Pool, *, now: datetime, limit: int = 500) -> list[UUID]:
    """Return open attempts whose task may be lost; the wait doubles after each redrive."""
    due = LaunchAttempt.objects.filter(slot__pool=pool, outcome=AttemptOutcome.OPEN, due_at__lte=now)
    by_redrives: dict[int, list[UUID]] = {}
    for key, redrives in due.order_by("due_at", "pk").values_list("pk", "redrives")[:limit]:
        by_redrives.setdefault(redrives, []).append(key)
    for redrives, keys in by_redrives.items():
        LaunchAttempt.objects.filter(pk__in=keys, redrives=redrives).update(
            redrives=redrives + 1, due_at=now + redrive_wait(redrives + 1)
        )
    return [key for keys in by_redrives.values() for key in keys]


def redrive_wait(redrives: int) -> timedelta:
    """Return the wait before a redrive: 30 s after the first task, then 1, 2, 4, 8, 10, 10 … minutes."""
    return min(REDRIVE_AFTER * int(2 ** min(redrives, 10)), MAX_REDRIVE_WAIT)


def backoff(failures: int) -> timedelta:
    """Return the back-off after a number of failures: 5, 10, 20, 30, 30 … minutes."""
    doubled = INITIAL_BACKOFF * int(2 ** min(max(failures - 1, 0), 10))
    return min(doubled, MAX_BACKOFF)


def _try_offerings(attempt: LaunchAttempt, runtime: RuntimeAdapter, clock: Clock, hold: HeldLease) -> None:
    refusal: RuntimeFailure = CapacityRefused("every offering was recently refused")
    try:
        offerings = _offerings_for(attempt, runtime, clock())
    except RuntimeFailure as error:
        _end_failed(attempt, error, clock())
        return
    for number, offering in enumerate(offerings, 1):
        if not hold.renew():
            return
        # Record which offering the attempt requests before calling the provider.
        LaunchAttempt.objects.filter(pk=attempt.pk).update(offering=offering.name)
        attempt.offering = offering.name
        try:
            instance = runtime.launch(_launch_request(attempt, offering))
        except ResponseLost as error:
            # The attempt stays open: the next call repeats the request, or the token finds the instance.
            logger.warning("launch_response_lost", extra={"slot": attempt.slot.name, "error": str(error)})
            return
        except RuntimeFailure as error:
            others = _other_offerings(attempt, runtime, clock())
            if not _has_alternative(error, offering, [*offerings[number:], *others]):
                _end_failed(attempt, error, clock())
                return
            refusal = error
            pool = attempt.slot.pool
            record_refused_offering(pool, offering.name, until=clock() + REFUSAL_BACKOFF)
            LAUNCHES.labels(pool=pool.name, result=error.category).inc()
        except Exception as error:
            logger.exception("launch_failed", extra={"slot": attempt.slot.name})
            _end_failed(attempt, RuntimeFailure(f"{type(error).__name__}: {error}"), clock())
            return
        else:
            record_launch(attempt, instance, now=clock())
            return
    _end_refused(attempt, refusal, clock(), pool_waits=not _other_offerings(attempt, runtime, clock()))


def _offerings_for(attempt: LaunchAttempt, runtime: RuntimeAdapter, now: datetime) -> list[Offering]:
    pool = attempt.slot.pool
    return open_offerings(
        pool, runtime, now, requested=attempt.offering, on_demand_only=attempt.on_demand_only
    )


def _other_offerings(attempt: LaunchAttempt, runtime: RuntimeAdapter, now: datetime) -> list[Offering]:
    """Return offerings that this attempt may not request but other attempts of the pool may."""
    return open_offerings(attempt.slot.pool, runtime, now) if attempt.on_demand_only else []


def _has_alternative(error: RuntimeFailure, offering: Offering, others: Sequence[Offering]) -> bool:
    """Return whether another offering may work: always after a refusal, in the other market after a quota."""
    if isinstance(error, QuotaExceeded):
        return any(other.market != offering.market for other in others)
    return isinstance(error, CapacityRefused)


def record_launch(attempt: LaunchAttempt, instance: Instance, *, now: datetime) -> bool:
    """Record the instance of an open attempt; the slot is now booting."""
    try:
        with transaction.atomic():
            if not _finish(attempt, AttemptOutcome.LAUNCHED, now, instance_id=instance.id):
                return False
            moved = move_slot(
                slot=attempt.slot,
                to=SlotState.BOOTING,
                now=now,
                instance_id=instance.id,
                endpoint=instance.endpoint,
                offering=attempt.offering,
                is_spot=instance.market == Market.SPOT,
                labels=_labels(attempt.slot.pool, instance),
            )
    except IntegrityError:
        _end_unlaunched(attempt, now, f"{instance.id} was assigned to another slot meanwhile")
        return False
    LAUNCHES.labels(pool=attempt.slot.pool.name, result="launched").inc()
    return moved


def _labels(pool: Pool, instance: Instance) -> dict[str, str]:
    """Return the labels by the pool's current settings; empty if the settings are invalid."""
    try:
        return runtime_for(pool).labels_of(instance.id)
    except RuntimeFailure:
        return {}


def abandon_attempt(attempt: LaunchAttempt, *, now: datetime, reason: str) -> None:
    """Close an attempt that has no response and no instance at its deadline, and free its slot.

    An instance that appears later is an orphan. The attempt counts as a failure, so that a provider that
    never responds is called less and less often.
    """
    with transaction.atomic():
        if not _finish(attempt, AttemptOutcome.LOST, now, error=reason):
            return
        count_failure(attempt.slot.pool, now, reason=reason)
        move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=reason)
    LAUNCHES.labels(pool=attempt.slot.pool.name, result="lost").inc()


def record_refused_offering(pool: Pool, name: str, *, until: datetime) -> None:
    """Record that the provider refused an offering, so that the next launches request another."""
    _record_by_name(pool, "refused_offerings", name, until)


def record_worker_failure(pool: Pool, name: str, *, failed_at: datetime | None) -> None:
    """Record that a listed worker did not respond, so that others are tried first; None clears it."""
    if failed_at is not None or name in pool.failed_workers:
        _record_by_name(pool, "failed_workers", name, failed_at)


def _record_by_name(pool: Pool, column: str, name: str, time: datetime | None) -> None:
    """Set a name's time in a JSON column of the pool, or remove it; other changes of the column stay."""
    with transaction.atomic():
        fresh = Pool.objects.select_for_update().get(pk=pool.pk)
        others = {key: at for key, at in getattr(fresh, column).items() if key != name}
        setattr(pool, column, {**others, name: time.isoformat()} if time else others)
        Pool.objects.filter(pk=pool.pk).update(**{column: getattr(pool, column)})


def _end_refused(attempt: LaunchAttempt, error: RuntimeFailure, now: datetime, *, pool_waits: bool) -> None:
    """Record that no offering is available. Demand stays.

    With `pool_waits` the pool launches nothing until an offering may be requested again; without it other
    attempts may request another offering meanwhile.
    """
    pool = attempt.slot.pool
    retry_times = refusals(pool, now).values()
    with transaction.atomic():
        if _finish(attempt, AttemptOutcome.REFUSED, now, category=error.category, error=str(error)):
            # Lock the pool before its slot, in the same order as the deletion of a pool.
            if pool_waits:
                until = min(retry_times, default=now + REFUSAL_BACKOFF)
                _wait_until(pool, until, now, reason=str(error))
            move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=str(error))


def _end_failed(attempt: LaunchAttempt, error: RuntimeFailure, now: datetime) -> None:
    """Apply the consequence of a failure to the pool, by failure category."""
    pool, text = attempt.slot.pool, remove_unstorable(str(error))[:500]
    LAUNCHES.labels(pool=pool.name, result=error.category).inc()
    with transaction.atomic():
        if not _finish(attempt, AttemptOutcome.FAILED, now, category=error.category, error=text):
            return
        if error.category == Category.CONFIGURATION:
            stop_pool(pool=pool, reason=text, now=now)
            move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=text)
        elif error.category == Category.THROTTLED:
            _wait_until(pool, now + THROTTLE_BACKOFF, now, reason=text)
            move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=text)
        else:
            until = count_failure(pool, now, reason=text)
            move_slot(slot=attempt.slot, to=SlotState.ERROR, now=now, reason=text, state_deadline=until)


def count_failure(pool: Pool, now: datetime, *, reason: str) -> datetime:
    """Increase the pool's back-off; launches that fail together count as one failure.

    Call in a transaction.
    """
    fresh = Pool.objects.select_for_update().get(pk=pool.pk)
    if fresh.failures == 0 or fresh.backoff_until is None or fresh.backoff_until <= now:
        fresh.failures += 1
    until = max(now + backoff(fresh.failures), fresh.backoff_until or now)
    pools = Pool.objects.filter(pk=pool.pk)
    pools.update(failures=fresh.failures, backoff_until=until, backoff_since=_waits_since(now))
    announce_backoff(pool, until=until, reason=reason, now=now)
    return until


def reset_failures(pool: Pool, now: datetime) -> None:
    """Reset the back-off after a worker became ready; a current back-off stays.

    A worker that becomes ready during a back-off was launched before it.
    """
    over = Q(backoff_until=None) | Q(backoff_until__lte=now)
    Pool.objects.filter(over, pk=pool.pk).update(failures=0, backoff_until=None, backoff_since=None)


def _wait_until(pool: Pool, until: datetime, now: datetime, *, reason: str) -> None:
    """Postpone launches of the pool until this time, unless a later time is set. Call in a transaction."""
    sooner = Q(backoff_until=None) | Q(backoff_until__lt=until)
    pools = Pool.objects.filter(sooner, pk=pool.pk)
    if pools.update(backoff_until=until, backoff_since=_waits_since(now)):
        announce_backoff(pool, until=until, reason=reason, now=now)


def _waits_since(now: datetime) -> Case:
    """Return the start of the current wait; extending a wait keeps its start."""
    return Case(When(backoff_until__gt=now, then=F("backoff_since")), default=Value(now))


def _cancel_attempt(attempt: LaunchAttempt, now: datetime) -> None:
    """Cancel the attempt because the pool stopped launching; nothing is requested, demand stays."""
    pool = attempt.slot.pool
    reason = pool.stopped_reason or ("the pool is backing off" if pool.enabled else "the pool is disabled")
    _end_unlaunched(attempt, now, f"not requested: {reason}")


def _end_unlaunched(attempt: LaunchAttempt, now: datetime, reason: str) -> None:
    with transaction.atomic():
        if _finish(attempt, AttemptOutcome.REFUSED, now, error=reason):
            move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=reason)


def _finish(
    attempt: LaunchAttempt, outcome: AttemptOutcome, now: datetime, *, error: str = "", **fields: str
) -> bool:
    """Close an open attempt; False if it was closed before."""
    still_open = LaunchAttempt.objects.filter(pk=attempt.pk, outcome=AttemptOutcome.OPEN)
    return (
        still_open.update(outcome=outcome, finished_at=now, error=remove_unstorable(error)[:500], **fields)
        == 1
    )


def boot_token(attempt: LaunchAttempt) -> str:
    """Return the one-time secret of a worker: constant per attempt and not derivable from its tags."""
    return salted_hmac("lcm.boot", attempt.token, algorithm="sha256").hexdigest()


def _launch_request(attempt: LaunchAttempt, offering: Offering) -> LaunchRequest:
    slot = attempt.slot
    others = Slot.objects.filter(pool=slot.pool).exclude(instance_id="").values_list("instance_id", flat=True)
    return LaunchRequest(
        token=attempt.token,
        slot_id=str(slot.pk),
        slot_name=slot.name,
        offering=offering,
        user_data=user_data(
            slot_id=str(slot.pk), controller_url=settings.CONFIG["PUBLIC_URL"], token=boot_token(attempt)
        ),
        worker=attempt.worker,
        workers_in_use=frozenset(others),
    )
