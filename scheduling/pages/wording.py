"""What a pool's and a slot's pages say first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from lcm.web.wording import duration_text
from scheduling.models import IN_FLIGHT, Pool, Slot, SlotState
from scheduling.selectors.capacity import PoolFigures


@dataclass(frozen=True)
class Notice:
    """Something to know about a pool or slot, and what to do about it."""

    tone: str
    shape: str
    title: str
    text: str


def pool_sentence(pool: Pool, figures: PoolFigures, *, now: datetime) -> str:
    """“**3 of 6 slots are ready; 2 sessions wait, the oldest for 4 min.** 1 slot is on its way.”"""
    slots = f"{figures.ready or 'None'} of {_counted(pool.max_slots, 'slot')}"
    first = f"**{slots} {'are' if figures.ready > 1 else 'is'} ready; {_queue(figures, now)}.**"
    coming = figures.in_states(IN_FLIGHT)
    if coming:
        first += f" {_counted(coming, 'slot')} {'is' if coming == 1 else 'are'} on the way."
    return first


def pool_notices(pool: Pool, *, now: datetime) -> Iterator[Notice]:
    """Why nothing is launched, or not everything that is on offer."""
    if not pool.enabled:
        text = "It takes no new sessions and launches nothing; what it holds runs on. Edit it to change that."
        yield Notice("warn", "tri", "The pool is switched off.", text)
    if pool.stopped_reason:
        why = f"{pool.stopped_reason.rstrip('.')}. Nothing is launched until its settings are changed."
        yield Notice("bad", "oct", "Stopped by a configuration error.", why)
    if pool.backoff_until and pool.backoff_until > now:
        yield _backoff_notice(pool, pool.backoff_until, now)
    for offering, text in sorted(pool.refused_offerings.items()):
        until = datetime.fromisoformat(text)
        if until > now:
            again = f"There was no capacity for it. It is asked for again in {duration_text(until - now)}."
            yield Notice("warn", "tri", f"{offering} was refused.", f"{again} Others are tried meanwhile.")


def counts_text(counts: Mapping[str, int]) -> str:
    """What a tick did: “placed 3, launched for demand 1”."""
    return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items())


def slot_sentence(slot: Slot, *, now: datetime) -> str:
    """What the slot is doing and what happens next."""
    since = duration_text(now - slot.last_state_change)
    leases = f"{slot.lease_count} of {_counted(slot.max_leases, 'lease')}"
    match SlotState(slot.state):
        case SlotState.EMPTY:
            return f"**No worker is here, for {since}.** The pool launches one when it is needed."
        case SlotState.LAUNCHING | SlotState.BOOTING | SlotState.BINDING:
            return f"**A worker is on the way, {slot.get_state_display().lower()} for {since}.**"
        case SlotState.READY if slot.cordoned:
            return f"**Ready for {since}, but cordoned: it gets no more sessions.** {leases} are in use."
        case SlotState.READY:
            return f"**Ready for {since}.** {leases} are in use."
        case SlotState.DRAINING if slot.lease_count:
            return f"**Draining for {since}.** It ends when the last of {leases} is given back."
        case SlotState.DRAINING:
            return f"**Draining for {since}.** It has no lease and is about to end."
        case SlotState.TERMINATING:
            return f"**Its worker is being ended, for {since}.**"
        case _:
            return f"**In error for {since}.** Nothing is tried here until the wait is over or you retry."


def slot_notices(slot: Slot, *, now: datetime) -> Iterator[Notice]:
    if slot.interruption_deadline:
        left = slot.interruption_deadline - now
        when = f"Gone in {countdown(left)}" if left > timedelta(0) else "Its time is over"
        text = f"{when}. Sessions that have not started return to the queue, the others are stopped."
        yield Notice("warn", "tri", "The provider takes this worker away.", text)
    if slot.state == SlotState.ERROR:
        wait = slot.state_deadline - now if slot.state_deadline else None
        again = f"Tried again in {duration_text(wait)}. " if wait and wait > timedelta(0) else ""
        why = f"{(slot.reason or 'No reason was given').rstrip('.')}."
        then = "Stop its sessions to be able to retry." if slot.lease_count else "Retry to use it at once."
        yield Notice("bad", "oct", why, f"{again}{then}")
    elif overdue(slot, now=now):
        assert slot.state_deadline is not None
        late = duration_text(now - slot.state_deadline)
        text = f"It should not be {slot.get_state_display().lower()} any more and is ended at the next look."
        yield Notice("warn", "tri", f"Overdue by {late}.", text)


def overdue(slot: Slot, *, now: datetime) -> bool:
    """Past its deadline; one that drains may take as long as its leases."""
    if slot.state_deadline is None or slot.state_deadline >= now:
        return False
    return slot.state != SlotState.ERROR and not (slot.state == SlotState.DRAINING and slot.lease_count)


def countdown(left: timedelta) -> str:
    """`01:42`"""
    seconds = max(int(left.total_seconds()), 0)
    return f"{seconds // 60:02}:{seconds % 60:02}"


def _queue(figures: PoolFigures, now: datetime) -> str:
    if not figures.waiting:
        return "nothing waits"
    noun = "reservation" if figures.waiting_without_session else "session"
    waits = f"{_counted(figures.waiting, noun)} {'waits' if figures.waiting == 1 else 'wait'}"
    if figures.oldest is None:
        return waits
    length = duration_text(max(now - figures.oldest, timedelta(0)))
    return f"{waits}, {'for' if figures.waiting == 1 else 'the oldest for'} {length}"


def _backoff_notice(pool: Pool, until: datetime, now: datetime) -> Notice:
    why = f" after {_counted(pool.failures, 'failure')}" if pool.failures else ", as there was no capacity"
    left = duration_text(until - now)
    text = f"It goes on by itself at {timezone.localtime(until):%H:%M:%S}, in {left}."
    if pool.failures:
        text += " To go on at once, retry a slot in error or change the settings."
    return Notice("warn", "clock", f"Nothing is launched{why}.", text)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else f'{noun}s'}"
