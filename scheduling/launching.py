"""Launching: the outside call behind an open attempt, and what its answer means."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.crypto import salted_hmac

from lcm.storable import storable
from scheduling.leases import Hold, lease
from scheduling.metrics import LAUNCHES
from scheduling.models import AttemptOutcome, LaunchAttempt, Pool, Slot, SlotState, SpotPolicy
from scheduling.runtimes.base import (
    AnswerLost,
    CapacityRefused,
    Category,
    Instance,
    LaunchRequest,
    Market,
    Offering,
    RuntimeAdapter,
    RuntimeFailure,
)
from scheduling.runtimes.registry import runtime_for
from scheduling.runtimes.user_data import user_data
from scheduling.services.pools import stop_pool
from scheduling.services.slots import move_slot

logger = logging.getLogger(__name__)

REFUSED_FOR = timedelta(minutes=3)
THROTTLED_FOR = timedelta(seconds=15)
BACKOFF_FIRST = timedelta(minutes=5)
BACKOFF_MOST = timedelta(minutes=30)
CALL_LEASE = timedelta(minutes=2)
# An open attempt this old may have lost its task; sent again and again, it is left alone for longer.
REDRIVE_AFTER = timedelta(seconds=30)
REDRIVE_MOST = timedelta(minutes=10)

Clock = Callable[[], datetime]


def perform_launch(attempt_id: UUID, runtime: RuntimeAdapter, clock: Clock) -> None:
    """Fill the slot of an open attempt; a second call for the same attempt finds nothing to do."""
    with lease(f"launch:{attempt_id}", length=CALL_LEASE, clock=clock) as hold:
        if hold is None:
            return
        attempt = (
            LaunchAttempt.objects.select_related("slot__pool")
            .filter(pk=attempt_id, outcome=AttemptOutcome.OPEN, slot__state=SlotState.LAUNCHING)
            .first()
        )
        if attempt is None:
            return
        never_asked = not attempt.offering
        if never_asked and not may_launch(attempt.slot.pool, clock()):
            _call_off(attempt, clock())
        else:
            _try_offerings(attempt, runtime, clock, hold)


def may_launch(pool: Pool, now: datetime) -> bool:
    """Not while the pool is off, stopped by its configuration, or backing off."""
    if not pool.enabled or pool.stopped_reason:
        return False
    return pool.backoff_until is None or pool.backoff_until <= now


def attempts_to_redrive(pool: Pool, *, now: datetime, limit: int = 500) -> list[UUID]:
    """Open attempts whose task may be lost, each put off for twice as long as the last time."""
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
    """30 s after the first task, then 1, 2, 4, 8, 10, 10 … minutes."""
    return min(REDRIVE_AFTER * int(2 ** min(redrives, 10)), REDRIVE_MOST)


def open_offerings(pool: Pool, runtime: RuntimeAdapter, now: datetime, asked: str = "") -> list[Offering]:
    """What may be asked for now: by the pool's spot policy, without what was refused a moment ago.

    What an attempt asked for before without an answer comes first, refused to others or not: its token
    finds what was begun, and nothing is begun twice.
    """
    wanted = {
        SpotPolicy.NEVER: (Market.ON_DEMAND,),
        SpotPolicy.ONLY: (Market.SPOT,),
        SpotPolicy.FALLBACK: (Market.SPOT, Market.ON_DEMAND),
    }[SpotPolicy(pool.spot_policy)]
    offerings = [each for market in wanted for each in runtime.offerings() if each.market == market]
    refused = {name for name, until in pool.refused_offerings.items() if datetime.fromisoformat(until) > now}
    found = [each for each in offerings if each.name not in refused or each.name == asked]
    return sorted(found, key=lambda each: each.name != asked)


def backoff(failures: int) -> timedelta:
    """5, 10, 20, 30, 30 … minutes."""
    doubled = BACKOFF_FIRST * int(2 ** min(max(failures - 1, 0), 10))
    return min(doubled, BACKOFF_MOST)


def _try_offerings(attempt: LaunchAttempt, runtime: RuntimeAdapter, clock: Clock, hold: Hold) -> None:
    pool = attempt.slot.pool
    refusal: RuntimeFailure = CapacityRefused("every offering was refused a moment ago")
    try:
        offerings = open_offerings(pool, runtime, clock(), asked=attempt.offering)
    except RuntimeFailure as error:
        _failed(attempt, error, clock())
        return
    for offering in offerings:
        if not hold.renew():
            return
        # The intent first: which offering this attempt asks for.
        LaunchAttempt.objects.filter(pk=attempt.pk).update(offering=offering.name)
        attempt.offering = offering.name
        try:
            instance = runtime.launch(_request(attempt, offering))
        except CapacityRefused as error:
            refusal = error
            refuse_offering(pool, offering.name, until=clock() + REFUSED_FOR)
            LAUNCHES.labels(pool=pool.name, result=Category.CAPACITY).inc()
            continue
        except AnswerLost as error:
            # The attempt stays open: it is asked for again, or its instance is found by its token.
            logger.warning("launch_answer_lost", extra={"slot": attempt.slot.name, "error": str(error)})
            return
        except RuntimeFailure as error:
            _failed(attempt, error, clock())
            return
        except Exception as error:
            logger.exception("launch_failed", extra={"slot": attempt.slot.name})
            _failed(attempt, RuntimeFailure(f"{type(error).__name__}: {error}"), clock())
            return
        record_launch(attempt, instance, now=clock())
        return
    _refused(attempt, refusal, clock())


def record_launch(attempt: LaunchAttempt, instance: Instance, *, now: datetime) -> bool:
    """The answer to an open attempt: the slot has an instance, which boots."""
    try:
        with transaction.atomic():
            if not _finish(attempt, AttemptOutcome.LAUNCHED, now, instance_id=instance.id):
                return False
            moved = _boot(attempt, instance, now)
    except IntegrityError:
        _end_unlaunched(attempt, now, f"{instance.id} was given to another slot a moment ago")
        return False
    LAUNCHES.labels(pool=attempt.slot.pool.name, result="launched").inc()
    return moved


def _boot(attempt: LaunchAttempt, instance: Instance, now: datetime) -> bool:
    Pool.objects.filter(pk=attempt.slot.pool_id).update(failures=0, backoff_until=None)
    return move_slot(
        slot=attempt.slot,
        to=SlotState.BOOTING,
        now=now,
        instance_id=instance.id,
        endpoint=instance.endpoint,
        offering=attempt.offering,
        is_spot=instance.market == Market.SPOT,
        labels=_labels(attempt.slot.pool, instance),
    )


def _labels(pool: Pool, instance: Instance) -> dict[str, str]:
    """As the pool's settings have them now; none where they allow no runtime any more."""
    try:
        return runtime_for(pool).labels_of(instance.id)
    except RuntimeFailure:
        return {}


def give_up(attempt: LaunchAttempt, *, now: datetime, reason: str) -> None:
    """No answer and no instance in time: the slot is free again, a late instance is an orphan.

    It counts as a failure: a provider that never answers is asked less and less often.
    """
    with transaction.atomic():
        if not _finish(attempt, AttemptOutcome.LOST, now, error=reason):
            return
        _count_failure(attempt.slot.pool, now)
        move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=reason)
    LAUNCHES.labels(pool=attempt.slot.pool.name, result="lost").inc()


def refuse_offering(pool: Pool, name: str, *, until: datetime) -> None:
    """Remember a refusal, so that the next launches ask for something else."""
    with transaction.atomic():
        fresh = Pool.objects.select_for_update().get(pk=pool.pk)
        fresh.refused_offerings = {**fresh.refused_offerings, name: until.isoformat()}
        fresh.save(update_fields=["refused_offerings"])
        pool.refused_offerings = fresh.refused_offerings


def _refused(attempt: LaunchAttempt, error: RuntimeFailure, now: datetime) -> None:
    """Demand stays. Nothing is asked for before an offering may be asked for again."""
    pool = attempt.slot.pool
    until = [datetime.fromisoformat(text) for text in pool.refused_offerings.values()]
    waits = [moment for moment in until if moment > now]
    with transaction.atomic():
        if _finish(attempt, AttemptOutcome.REFUSED, now, category=Category.CAPACITY, error=str(error)):
            move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=str(error))
            _wait_until(pool, min(waits, default=now + REFUSED_FOR))


def _failed(attempt: LaunchAttempt, error: RuntimeFailure, now: datetime) -> None:
    """What a failure means for the pool, by its class."""
    pool, text = attempt.slot.pool, storable(str(error))[:500]
    LAUNCHES.labels(pool=pool.name, result=error.category).inc()
    with transaction.atomic():
        if not _finish(attempt, AttemptOutcome.FAILED, now, category=error.category, error=text):
            return
        if error.category == Category.CONFIGURATION:
            stop_pool(pool=pool, reason=text, now=now)
            move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=text)
        elif error.category == Category.THROTTLED:
            _wait_until(pool, now + THROTTLED_FOR)
            move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=text)
        else:
            until = _count_failure(pool, now)
            move_slot(slot=attempt.slot, to=SlotState.ERROR, now=now, reason=text, state_deadline=until)


def _count_failure(pool: Pool, now: datetime) -> datetime:
    """Launch nothing for longer than the last time; launches that fail together are one failure."""
    fresh = Pool.objects.select_for_update().get(pk=pool.pk)
    if fresh.failures == 0 or fresh.backoff_until is None or fresh.backoff_until <= now:
        fresh.failures += 1
    until = max(now + backoff(fresh.failures), fresh.backoff_until or now)
    Pool.objects.filter(pk=pool.pk).update(failures=fresh.failures, backoff_until=until)
    return until


def _wait_until(pool: Pool, until: datetime) -> None:
    """Launch nothing before then; a longer wait stays."""
    sooner = Q(backoff_until=None) | Q(backoff_until__lt=until)
    Pool.objects.filter(sooner, pk=pool.pk).update(backoff_until=until)


def _call_off(attempt: LaunchAttempt, now: datetime) -> None:
    """The pool has stopped launching since: nothing is asked for, the demand stays."""
    pool = attempt.slot.pool
    why = pool.stopped_reason or ("it backs off" if pool.enabled else "it was switched off")
    _end_unlaunched(attempt, now, f"not asked for: {why}")


def _end_unlaunched(attempt: LaunchAttempt, now: datetime, reason: str) -> None:
    with transaction.atomic():
        if _finish(attempt, AttemptOutcome.REFUSED, now, error=reason):
            move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=reason)


def _finish(
    attempt: LaunchAttempt, outcome: AttemptOutcome, now: datetime, *, error: str = "", **fields: str
) -> bool:
    """Close an open attempt once; whoever comes second changes nothing."""
    mine = LaunchAttempt.objects.filter(pk=attempt.pk, outcome=AttemptOutcome.OPEN)
    return mine.update(outcome=outcome, finished_at=now, error=storable(error)[:500], **fields) == 1


def boot_token(attempt: LaunchAttempt) -> str:
    """What a worker proves itself with once: the same for an attempt, and not what its tags show."""
    return salted_hmac("lcm.boot", attempt.token, algorithm="sha256").hexdigest()


def _request(attempt: LaunchAttempt, offering: Offering) -> LaunchRequest:
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
        taken=frozenset(others),
    )
