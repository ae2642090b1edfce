"""Launching: the outside call behind an open attempt, and what its answer means."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils.crypto import salted_hmac

from lcm.actors import SYSTEM
from lcm.services.changelog import log_change
from scheduling.leases import lease
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
from scheduling.runtimes.user_data import user_data
from scheduling.services.slots import move_slot

logger = logging.getLogger(__name__)

REFUSED_FOR = timedelta(minutes=3)
THROTTLED_FOR = timedelta(seconds=15)
BACKOFF_FIRST = timedelta(minutes=5)
BACKOFF_MOST = timedelta(minutes=30)
CALL_LEASE = timedelta(minutes=2)

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
        if attempt is not None:
            _try_offerings(attempt, runtime, clock)


def open_offerings(pool: Pool, runtime: RuntimeAdapter, now: datetime) -> list[Offering]:
    """What may be asked for now: by the pool's spot policy, without what was refused a moment ago."""
    wanted = {
        SpotPolicy.NEVER: (Market.ON_DEMAND,),
        SpotPolicy.ONLY: (Market.SPOT,),
        SpotPolicy.FALLBACK: (Market.SPOT, Market.ON_DEMAND),
    }[SpotPolicy(pool.spot_policy)]
    offerings = [each for market in wanted for each in runtime.offerings() if each.market == market]
    refused = {name for name, until in pool.refused_offerings.items() if datetime.fromisoformat(until) > now}
    return [each for each in offerings if each.name not in refused]


def backoff(failures: int) -> timedelta:
    """5, 10, 20, 30, 30 … minutes."""
    doubled = BACKOFF_FIRST * int(2 ** min(max(failures - 1, 0), 10))
    return min(doubled, BACKOFF_MOST)


def _try_offerings(attempt: LaunchAttempt, runtime: RuntimeAdapter, clock: Clock) -> None:
    pool = attempt.slot.pool
    refusal: RuntimeFailure = CapacityRefused("every offering was refused a moment ago")
    try:
        offerings = open_offerings(pool, runtime, clock())
    except RuntimeFailure as error:
        _failed(attempt, error, clock())
        return
    # Asked before without an answer: the same offering first, whose token finds what was begun.
    offerings.sort(key=lambda each: each.name != attempt.offering)
    for offering in offerings:
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
        )
        Pool.objects.filter(pk=attempt.slot.pool_id).update(failures=0, backoff_until=None)
    LAUNCHES.labels(pool=attempt.slot.pool.name, result="launched").inc()
    return moved


def give_up(attempt: LaunchAttempt, *, now: datetime, reason: str) -> None:
    """No answer and no instance in time: the slot is free again, a late instance is an orphan."""
    with transaction.atomic():
        if _finish(attempt, AttemptOutcome.LOST, now, error=reason):
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
            Pool.objects.filter(pk=pool.pk).update(backoff_until=min(waits, default=now + REFUSED_FOR))


def _failed(attempt: LaunchAttempt, error: RuntimeFailure, now: datetime) -> None:
    """What a failure means for the pool, by its class."""
    pool, text = attempt.slot.pool, str(error)[:500]
    LAUNCHES.labels(pool=pool.name, result=error.category).inc()
    with transaction.atomic():
        if not _finish(attempt, AttemptOutcome.FAILED, now, category=error.category, error=text):
            return
        if error.category == Category.CONFIGURATION:
            _stop_pool(pool, text, now)
            move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=text)
        elif error.category == Category.THROTTLED:
            Pool.objects.filter(pk=pool.pk).update(backoff_until=now + THROTTLED_FOR)
            move_slot(slot=attempt.slot, to=SlotState.EMPTY, now=now, reason=text)
        else:
            Pool.objects.filter(pk=pool.pk).update(failures=F("failures") + 1)
            pool.refresh_from_db(fields=["failures"])
            until = now + backoff(pool.failures)
            Pool.objects.filter(pk=pool.pk).update(backoff_until=until)
            move_slot(slot=attempt.slot, to=SlotState.ERROR, now=now, reason=text, state_deadline=until)


def _stop_pool(pool: Pool, reason: str, now: datetime) -> None:
    if Pool.objects.filter(pk=pool.pk, stopped_reason="").update(
        stopped_reason=reason or "wrongly configured"
    ):
        message = f"pool {pool} stopped: nothing can be launched like this"
        log_change(pool, actor=SYSTEM, event="pool_stopped", message=message, reason=reason, now=now)


def _finish(
    attempt: LaunchAttempt, outcome: AttemptOutcome, now: datetime, *, error: str = "", **fields: str
) -> bool:
    """Close an open attempt once; whoever comes second changes nothing."""
    mine = LaunchAttempt.objects.filter(pk=attempt.pk, outcome=AttemptOutcome.OPEN)
    return mine.update(outcome=outcome, finished_at=now, error=error[:500], **fields) == 1


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
