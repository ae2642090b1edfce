"""Lead sentences, notices and status texts of pool and slot pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from lcm.web.wording import clock_text, duration_text
from scheduling.capacity.launcher import may_launch
from scheduling.models import IN_FLIGHT, OCCUPIED, Pool, Slot, SlotState
from scheduling.pages.supply import PoolSupply
from scheduling.selectors.pools import PoolFigures
from scheduling.selectors.reservations import SlotOccupancy

# Texts of a tick's counts in the order of its steps; JSON in the database does not keep the order.
COUNT_TEXTS: dict[str, Callable[[int], str]] = {
    "expired": lambda n: ngettext("%(count)s expired", "%(count)s expired", n),
    "interrupted": lambda n: ngettext("%(count)s interrupted", "%(count)s interrupted", n),
    "lost": lambda n: ngettext("%(count)s lost", "%(count)s lost", n),
    "placed": lambda n: ngettext("%(count)s placed", "%(count)s placed", n),
    "new_wait_reasons": lambda n: ngettext("%(count)s new wait reason", "%(count)s new wait reasons", n),
    "evicted": lambda n: ngettext("%(count)s evicted", "%(count)s evicted", n),
    "unmet": lambda n: ngettext("%(count)s without a slot", "%(count)s without a slot", n),
    "launched_for_demand": lambda n: ngettext(
        "%(count)s launched for demand", "%(count)s launched for demand", n
    ),
    "launched_for_minimum": lambda n: ngettext(
        "%(count)s launched for the minimum", "%(count)s launched for the minimum", n
    ),
    "drained": lambda n: ngettext("%(count)s drained", "%(count)s drained", n),
    "drained_for_on_demand": lambda n: ngettext(
        "%(count)s drained for on-demand", "%(count)s drained for on-demand", n
    ),
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
    starting_count = figures.in_states(IN_FLIGHT)
    if starting_count:
        starting = ngettext("%(count)s slot starting.", "%(count)s slots starting.", starting_count)
        return f"{first} {starting % {'count': f'{starting_count:,}'}}"
    return first


def ready_text(ready: int, more: int) -> str:
    """Format the number of ready and launchable slots; no launchable slots while the pool cannot launch."""
    slots = ngettext("%(count)s slot ready", "%(count)s slots ready", ready) % {"count": f"{ready:,}"}
    if not more:
        return slots
    launchable = ngettext("%(count)s can be launched", "%(count)s can be launched", more)
    return f"{slots} · {launchable % {'count': f'{more:,}'}}"


def waiting_text(count: int) -> str:
    return ngettext("%(count)s waiting", "%(count)s waiting", count) % {"count": f"{count:,}"}


def booked_text(count: int) -> str:
    """Format the number of advance bookings that have not joined the queue."""
    return ngettext("%(count)s booked", "%(count)s booked", count) % {"count": f"{count:,}"}


def pool_notices(pool: Pool, supply: PoolSupply, *, now: datetime) -> Iterator[PoolNotice]:
    """Return notices about why the pool launches nothing, or not every offering."""
    if not pool.enabled:
        text = _("It accepts no new sessions and launches nothing. Running sessions continue.")
        yield PoolNotice("warn", "tri", _("The pool is disabled."), text)
    if pool.stopped_reason:
        effect = _("Nothing is launched until its settings are changed.")
        reason = f"{_sentence(pool.stopped_reason)} {effect}"
        yield PoolNotice("bad", "oct", _("Stopped by a configuration error."), reason)
    if pool.backoff_until and pool.backoff_until > now:
        yield _backoff_notice(pool, pool.backoff_until, now)
    if supply.refused and pool.enabled and not pool.stopped_reason:
        yield _refusal_notice(supply, now)


def counts_text(counts: Mapping[str, int]) -> str:
    """Format the counts of a tick in the order of its steps."""
    known = [
        text(counts[name]) % {"count": f"{counts[name]:,}"}
        for name, text in COUNT_TEXTS.items()
        if name in counts
    ]
    others = [f"{count:,} {name}" for name, count in counts.items() if name not in COUNT_TEXTS]
    return ", ".join([*known, *others])


def position_text(position: int | None, waiting: int, pool: str) -> str:
    """Format a position in the queue of a pool."""
    if position is None:
        return _("Waiting in %(pool)s; not evaluated by a tick yet.") % {"pool": pool}
    if waiting == 1:
        return _("Only session in the queue of %(pool)s.") % {"pool": pool}
    return _("Position %(position)s of %(waiting)s in the queue of %(pool)s.") % {
        "position": f"{position:,}",
        "waiting": f"{waiting:,}",
        "pool": pool,
    }


def slot_sentence(slot: Slot, *, now: datetime) -> str:
    """Return what the slot is doing and what happens next."""
    values = {"time": duration_text(now - slot.last_state_change)}
    match SlotState(slot.state):
        case SlotState.EMPTY:
            return _("**Empty for %(time)s.** The pool launches a worker when it is needed.") % values
        case SlotState.LAUNCHING | SlotState.BOOTING | SlotState.BINDING:
            return _("**%(state)s for %(time)s.** The slot accepts sessions when it is ready.") % {
                **values,
                "state": slot.get_state_display(),
            }
        case SlotState.READY if slot.cordoned:
            first = _("**Ready for %(time)s, cordoned: it gets no new sessions.**") % values
            return f"{first} {_leases_used(slot)}"
        case SlotState.READY:
            return f"{_('**Ready for %(time)s.**') % values} {_leases_used(slot)}"
        case SlotState.DRAINING if slot.lease_count:
            text = ngettext(
                "**Draining for %(time)s.** The worker terminates when its lease is released.",
                "**Draining for %(time)s.** The worker terminates when its %(count)s leases are released.",
                slot.lease_count,
            )
            return text % {**values, "count": slot.lease_count}
        case SlotState.DRAINING:
            return _("**Draining for %(time)s.** It has no lease and terminates soon.") % values
        case SlotState.TERMINATING:
            return _("**Terminating for %(time)s.**") % values
        case SlotState.ERROR:
            text = _("**In error for %(time)s.** LCM tries again when the wait is over or you retry.")
            return text % values


def _leases_used(slot: Slot) -> str:
    text = ngettext(
        "%(used)s of %(count)s lease in use.", "%(used)s of %(count)s leases in use.", slot.max_leases
    )
    return text % {"used": slot.lease_count, "count": f"{slot.max_leases:,}"}


def occupants_text(occupancy: SlotOccupancy) -> str:
    """Format the number of sessions on a slot and the end of the last one as a sentence."""
    if not occupancy.count:
        return _("No sessions on this slot.")
    number, values = occupancy.count, {"count": f"{occupancy.count:,}"}
    if occupancy.last_end is None:
        text = (
            ngettext("%(count)s reservation on this slot.", "%(count)s reservations on this slot.", number)
            if occupancy.without_session
            else ngettext("%(count)s session on this slot.", "%(count)s sessions on this slot.", number)
        )
        return text % values
    text = (
        ngettext(
            "%(count)s reservation on this slot, until %(time)s.",
            "%(count)s reservations hold this slot; the last ends at %(time)s.",
            number,
        )
        if occupancy.without_session
        else ngettext(
            "%(count)s session on this slot, until %(time)s.",
            "%(count)s sessions run on this slot; the last ends at %(time)s.",
            number,
        )
    )
    return text % {**values, "time": clock_text(occupancy.last_end)}


def slot_notices(slot: Slot, *, now: datetime) -> Iterator[PoolNotice]:
    if slot.interruption_deadline:
        left = slot.interruption_deadline - now
        when = _("The deadline has passed.")
        if left > timedelta(0):
            when = _("Terminates in %(time)s.") % {"time": countdown(left)}
        before = duration_text(timedelta(seconds=settings.CONFIG["INTERRUPTION_TEARDOWN"]))
        text = _(
            "Sessions that have not started return to the queue. Ready sessions stop now. "
            "LCM observes and ends running sessions %(time)s before the worker is gone. "
            "LCM requests preemptible sessions again for the rest of their timeslot."
        )
        yield PoolNotice("warn", "tri", _("Spot interruption notice."), f"{when} {text % {'time': before}}")
    if slot.state == SlotState.DRAINING and slot.heartbeat_lost_at:
        title = _("No heartbeat for %(time)s.")
        silent = {"time": duration_text(now - (slot.last_heartbeat or slot.last_state_change))}
        text = _("The drain cannot be cancelled until a heartbeat of the worker arrives.")
        yield PoolNotice("warn", "tri", title % silent, text)
    if slot.state == SlotState.ERROR:
        wait = slot.state_deadline - now if slot.state_deadline else None
        reason = f"{slot.reason.rstrip('.')}." if slot.reason else _("No reason was given.")
        text = _("Stop its sessions before you retry.") if slot.lease_count else _("Retry to use it at once.")
        if wait and wait > timedelta(0):
            text = f"{_('Retries in %(time)s.') % {'time': duration_text(wait)}} {text}"
        yield PoolNotice("bad", "oct", reason, text)
    elif overdue(slot, now=now):
        assert slot.state_deadline is not None
        late = duration_text(now - slot.state_deadline)
        title = _("Overdue by %(time)s.") % {"time": late}
        text = _("The time limit of this state has passed. LCM ends the slot at the next reconciliation.")
        yield PoolNotice("warn", "tri", title, text)


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


def _queue(figures: PoolFigures, now: datetime) -> str:
    waiting = _waiting(figures, now)
    if not figures.booked:
        return waiting
    return f"{waiting} · {booked_text(figures.booked)}"


def _waiting(figures: PoolFigures, now: datetime) -> str:
    """Format the queue; it has sessions, unless a reservation has none."""
    count, values = figures.waiting, {"count": f"{figures.waiting:,}"}
    if not count:
        return waiting_text(0)
    if figures.oldest_waiting_since is None:
        text = (
            ngettext("%(count)s reservation waiting", "%(count)s reservations waiting", count)
            if figures.waiting_without_session
            else ngettext("%(count)s session waiting", "%(count)s sessions waiting", count)
        )
        return text % values
    text = (
        ngettext(
            "%(count)s reservation waiting, for %(time)s",
            "%(count)s reservations waiting, the oldest for %(time)s",
            count,
        )
        if figures.waiting_without_session
        else ngettext(
            "%(count)s session waiting, for %(time)s",
            "%(count)s sessions waiting, the oldest for %(time)s",
            count,
        )
    )
    return text % {**values, "time": duration_text(max(now - figures.oldest_waiting_since, timedelta(0)))}


def _refusal_notice(supply: PoolSupply, now: datetime) -> PoolNotice:
    """Return one notice for all refusals; the table of offerings lists each with its time."""
    soonest = min(each.refused_until for each in supply.refused if each.refused_until)
    values = {"time": duration_text(soonest - now)}
    if supply.workers:
        text = _("LCM tries again in %(time)s.") % values
        return PoolNotice("warn", "tri", _("Every listed worker is in use."), text)
    names = [each.offering.name for each in supply.refused]
    if len(names) == 1:
        title = _("%(name)s was refused.") % {"name": names[0]}
    else:
        title = ngettext(
            "%(count)s offering was refused.", "%(count)s offerings were refused.", len(names)
        ) % {"count": len(names)}
    text = _("The provider had no capacity. LCM tries again in %(time)s.") % values
    if not supply.all_refused:
        text = f"{text} {_('Other offerings are tried meanwhile.')}"
    return PoolNotice("warn", "tri", title, text)


def _backoff_notice(pool: Pool, until: datetime, now: datetime) -> PoolNotice:
    text = _("Launches resume at %(clock)s, in %(time)s.") % {
        "clock": clock_text(until, seconds=True),
        "time": duration_text(until - now),
    }
    if not pool.failures:
        title = _("Nothing is launched: the provider has no capacity.")
        return PoolNotice("warn", "clock", title, text)
    title = ngettext(
        "Nothing is launched after %(count)s failure.",
        "Nothing is launched after %(count)s failures.",
        pool.failures,
    )
    advice = _("To continue at once, retry a slot in error or change the settings.")
    return PoolNotice("warn", "clock", title % {"count": f"{pool.failures:,}"}, f"{text} {advice}")
