"""Lead sentences, notices and status texts of pool and slot pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from lcm.web.wording import clock_text, count_text, duration_text
from scheduling.capacity.launcher import may_launch
from scheduling.models import IN_FLIGHT, OCCUPIED, Pool, Slot, SlotState
from scheduling.pages.supply import PoolSupply
from scheduling.selectors.pools import PoolFigures
from scheduling.selectors.reservations import SlotOccupancy

# Texts of a tick's counts in the order of its steps; JSON in the database does not keep the order.
COUNT_TEXTS = {
    "expired": ("{:,} expired", "{:,} expired"),
    "interrupted": ("{:,} interrupted", "{:,} interrupted"),
    "lost": ("{:,} lost", "{:,} lost"),
    "placed": ("{:,} placed", "{:,} placed"),
    "new_wait_reasons": ("{:,} new wait reason", "{:,} new wait reasons"),
    "evicted": ("{:,} evicted", "{:,} evicted"),
    "unmet": ("{:,} without a slot", "{:,} without a slot"),
    "launched_for_demand": ("{:,} launched for demand", "{:,} launched for demand"),
    "launched_for_minimum": ("{:,} launched for the minimum", "{:,} launched for the minimum"),
    "drained": ("{:,} drained", "{:,} drained"),
    "drained_for_on_demand": ("{:,} drained for on-demand", "{:,} drained for on-demand"),
}


@dataclass(frozen=True)
class PoolNotice:
    """A condition of a pool or slot, and the action it needs."""

    tone: str
    shape: str
    title: str
    text: str


def pool_sentence(pool: Pool, figures: PoolFigures, *, now: datetime) -> str:
    """Format the slots and the queue of a pool as a lead sentence."""
    more = max(pool.max_slots - figures.in_states(OCCUPIED), 0) if may_launch(pool, now) else 0
    first = f"**{ready_text(figures.ready, more)} · {_queue(figures, now)}.**"
    coming = figures.in_states(IN_FLIGHT)
    if coming:
        first += f" {count_text(coming, 'slot')} starting."
    return first


def ready_text(ready: int, more: int) -> str:
    """Format the number of ready and launchable slots; no launchable slots while the pool cannot launch."""
    slots = f"{count_text(ready, 'slot')} ready"
    return f"{slots} · {more:,} can be launched" if more else slots


def pool_notices(pool: Pool, supply: PoolSupply, *, now: datetime) -> Iterator[PoolNotice]:
    """Return notices about why the pool launches nothing, or not every offering."""
    if not pool.enabled:
        text = "It accepts no new sessions and launches nothing. Running sessions continue."
        yield PoolNotice("warn", "tri", "The pool is disabled.", text)
    if pool.stopped_reason:
        why = f"{_sentence(pool.stopped_reason)} Nothing is launched until its settings are changed."
        yield PoolNotice("bad", "oct", "Stopped by a configuration error.", why)
    if pool.backoff_until and pool.backoff_until > now:
        yield _backoff_notice(pool, pool.backoff_until, now)
    if supply.refused and pool.enabled and not pool.stopped_reason:
        yield _refusal_notice(supply, now)


def counts_text(counts: Mapping[str, int]) -> str:
    """Format the counts of a tick in the order of its steps."""
    known = [
        (one if counts[name] == 1 else many).format(counts[name])
        for name, (one, many) in COUNT_TEXTS.items()
        if name in counts
    ]
    others = [f"{count:,} {name}" for name, count in counts.items() if name not in COUNT_TEXTS]
    return ", ".join([*known, *others])


def place_text(position: int | None, waiting: int, pool: str) -> str:
    """Format a position in the queue of a pool."""
    if position is None:
        return f"Waiting in {pool}; not evaluated by a tick yet."
    if waiting == 1:
        return f"Only session in the queue of {pool}."
    return f"Position {position:,} of {waiting:,} in the queue of {pool}."


def slot_sentence(slot: Slot, *, now: datetime) -> str:
    """Return what the slot is doing and what happens next."""
    since = duration_text(now - slot.last_state_change)
    leases = f"{slot.lease_count} of {count_text(slot.max_leases, 'lease')}"
    used = f"{leases} in use."
    match SlotState(slot.state):
        case SlotState.EMPTY:
            return f"**Empty for {since}.** The pool launches a worker when it is needed."
        case SlotState.LAUNCHING | SlotState.BOOTING | SlotState.BINDING:
            return f"**{slot.get_state_display()} for {since}.** The slot accepts sessions when it is ready."
        case SlotState.READY if slot.cordoned:
            return f"**Ready for {since}, cordoned: it gets no new sessions.** {used}"
        case SlotState.READY:
            return f"**Ready for {since}.** {used}"
        case SlotState.DRAINING if slot.lease_count:
            if slot.lease_count == 1:
                return f"**Draining for {since}.** The worker terminates when its lease is released."
            then = f"The worker terminates when its {slot.lease_count} leases are released."
            return f"**Draining for {since}.** {then}"
        case SlotState.DRAINING:
            return f"**Draining for {since}.** It has no lease and terminates soon."
        case SlotState.TERMINATING:
            return f"**Terminating for {since}.**"
        case _:
            return f"**In error for {since}.** LCM tries again when the wait is over or you retry."


def occupants_text(on_it: SlotOccupancy) -> str:
    """Format the number of sessions on a slot and the end of the last one as a sentence."""
    if not on_it.count:
        return "No sessions on this slot."
    count = count_text(on_it.count, "reservation" if on_it.without_session else "session")
    if on_it.last_end is None:
        return f"{count} on this slot."
    if on_it.count == 1:
        return f"{count} on this slot, until {clock_text(on_it.last_end)}."
    return f"{count} on this slot, the last until {clock_text(on_it.last_end)}."


def slot_notices(slot: Slot, *, now: datetime) -> Iterator[PoolNotice]:
    if slot.interruption_deadline:
        left = slot.interruption_deadline - now
        when = f"Terminates in {countdown(left)}" if left > timedelta(0) else "The deadline has passed"
        before = duration_text(timedelta(seconds=settings.CONFIG["INTERRUPTION_TEARDOWN"]))
        text = (
            f"{when}. Sessions that have not started return to the queue. Ready sessions stop now. "
            f"LCM observes and ends running sessions {before} before the worker is gone. "
            "LCM requests preemptible sessions again for the rest of their timeslot."
        )
        yield PoolNotice("warn", "tri", "Spot interruption notice.", text)
    if slot.state == SlotState.ERROR:
        wait = slot.state_deadline - now if slot.state_deadline else None
        again = f"Retries in {duration_text(wait)}. " if wait and wait > timedelta(0) else ""
        why = f"{(slot.reason or 'No reason was given').rstrip('.')}."
        then = "Stop its sessions before you retry." if slot.lease_count else "Retry to use it at once."
        yield PoolNotice("bad", "oct", why, f"{again}{then}")
    elif overdue(slot, now=now):
        assert slot.state_deadline is not None
        late = duration_text(now - slot.state_deadline)
        text = "The time limit of this state has passed. LCM ends the slot at the next reconciliation."
        yield PoolNotice("warn", "tri", f"Overdue by {late}.", text)


def overdue(slot: Slot, *, now: datetime) -> bool:
    """Return whether the slot is past its deadline; a draining slot may wait for its leases."""
    if slot.state_deadline is None or slot.state_deadline >= now:
        return False
    return slot.state != SlotState.ERROR and not (slot.state == SlotState.DRAINING and slot.lease_count)


def countdown(left: timedelta) -> str:
    """Format a countdown: `01:42`."""
    seconds = max(int(left.total_seconds()), 0)
    return f"{seconds // 60:02}:{seconds % 60:02}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def waiting_noun(figures: PoolFigures) -> str:
    """Return the noun for waiting reservations: “sessions”, unless some have none."""
    noun = "reservation" if figures.waiting_without_session else "session"
    return noun if figures.waiting == 1 else f"{noun}s"


def _queue(figures: PoolFigures, now: datetime) -> str:
    ahead = f" · {figures.ahead:,} booked"
    return f"{_waits(figures, now)}{ahead if figures.ahead else ''}"


def _waits(figures: PoolFigures, now: datetime) -> str:
    if not figures.waiting:
        return "0 waiting"
    waits = f"{figures.waiting:,} {waiting_noun(figures)} waiting"
    if figures.oldest_waiting_since is None:
        return waits
    length = duration_text(max(now - figures.oldest_waiting_since, timedelta(0)))
    return f"{waits}, for {length}" if figures.waiting == 1 else f"{waits}, the oldest for {length}"


def _refusal_notice(supply: PoolSupply, now: datetime) -> PoolNotice:
    """Return one notice for all refusals; the table of offerings lists each with its time."""
    soonest = min(each.refused_until for each in supply.refused if each.refused_until)
    wait = duration_text(soonest - now)
    if supply.workers:
        return PoolNotice("warn", "tri", "Every listed worker is in use.", f"LCM tries again in {wait}.")
    names = [each.offering.name for each in supply.refused]
    title = f"{names[0]} was refused." if len(names) == 1 else f"{len(names)} offerings were refused."
    others = "" if supply.all_refused else " Other offerings are tried meanwhile."
    return PoolNotice(
        "warn", "tri", title, f"The provider had no capacity. LCM tries again in {wait}.{others}"
    )


def _backoff_notice(pool: Pool, until: datetime, now: datetime) -> PoolNotice:
    left = duration_text(until - now)
    text = f"Launches resume at {timezone.localtime(until):%H:%M:%S}, in {left}."
    if not pool.failures:
        return PoolNotice("warn", "clock", "Nothing is launched: the provider has no capacity.", text)
    title = f"Nothing is launched after {count_text(pool.failures, 'failure')}."
    advice = "To continue at once, retry a slot in error or change the settings."
    return PoolNotice("warn", "clock", title, f"{text} {advice}")
