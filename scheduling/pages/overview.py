"""Scheduling on the overview: items that need attention, pools, and the queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.web.access import role_required
from lcm.web.attention import AttentionItem, FleetSnapshot
from lcm.web.charts.bars import share_bar
from lcm.web.charts.points import Point, point_chart
from lcm.web.charts.scales import format_number
from lcm.web.charts.time_axis import TimeAxis
from lcm.web.overview import render_lazy_panel
from lcm.web.time_range import KeptData, range_of
from lcm.web.wording import duration_text
from scheduling.capacity.tick import TICK_RETENTION
from scheduling.models import SlotState
from scheduling.pages.pool_board import states_of
from scheduling.pages.texts import booked_text, waiting_text
from scheduling.selectors.observers import failing_observers
from scheduling.selectors.pool_overview import PoolOverview, pool_overviews
from scheduling.selectors.pools import BACKING_OFF
from scheduling.selectors.tick_durations import MOST_OF_POOL, TickDurations, tick_durations

POOLS_SHOWN = 25


def capacity_attention_items(snapshot: FleetSnapshot) -> Iterator[AttentionItem]:
    """Return stopped pools, slots in error or overdue, silent workers, long waits and failing observers."""
    lines = snapshot.read_once(pool_overviews)
    for line in lines:
        yield from _pool_items(line, snapshot.now)
    yield from _slot_items(lines)
    yield from _observer_items(snapshot.now)


def pools_part(snapshot: FleetSnapshot) -> Mapping[str, Any]:
    lines = snapshot.read_once(pool_overviews)
    rows = [
        (line, share_bar(states_of(line.by_state), of=line.pool.max_slots)) for line in lines[:POOLS_SHOWN]
    ]
    return {"rows": rows, "hidden": max(len(lines) - POOLS_SHOWN, 0)}


def queue_part(snapshot: FleetSnapshot) -> Mapping[str, Any]:
    lines = snapshot.read_once(pool_overviews)
    oldest = min(
        (line.pool.oldest_waiting_since for line in lines if line.pool.oldest_waiting_since), default=None
    )
    return {
        "waiting": _waiting(snapshot),
        "booked": _booked(snapshot),
        "oldest": max(snapshot.now - oldest, timedelta(0)) if oldest else None,
        "pools": len(lines),
        "in_time": sum(not line.exceeds_target_wait(snapshot.now) for line in lines),
        "ready": sum(line.by_state.get(SlotState.READY, 0) for line in lines),
        "most": sum(line.pool.max_slots for line in lines if line.pool.enabled),
    }


def waiting_clause(snapshot: FleetSnapshot) -> str:
    """Format the number of waiting sessions; advance bookings are counted separately."""
    waiting, booked = waiting_text(_waiting(snapshot)), _booked(snapshot)
    return f"{waiting}, {booked_text(booked)}" if booked else waiting


def _waiting(snapshot: FleetSnapshot) -> int:
    return sum(line.pool.waiting for line in snapshot.read_once(pool_overviews))


def _booked(snapshot: FleetSnapshot) -> int:
    return sum(line.pool.booked for line in snapshot.read_once(pool_overviews))


@require_GET
@role_required(Role.VIEWER)
def overview_ticks(request: HttpRequest) -> HttpResponseBase:
    """Panel of tick durations over the last hour, and a page of its own with other ranges."""
    now = timezone.now()
    kept = KeptData(now - TICK_RETENTION, now, _("LCM keeps ticks for 2 days."))
    shown = range_of(request, kept, default="1h")
    step = shown.step(MOST_OF_POOL)
    found = tick_durations(shown.start, shown.end, step=step)
    points = [Point(each.at, each.slowest_ms, each.pool) for each in found.points]
    rest = ngettext("%(count)s other pool", "%(count)s other pools", found.others) % {"count": found.others}
    address = reverse("overview_ticks")
    context = {
        "now": now,
        "range": shown,
        "address": address,
        "chart": point_chart(
            points,
            axis=TimeAxis(shown.start, shown.end),
            step=step,
            title=_("Duration of ticks, %(range)s") % {"range": shown.text},
            unit="ms",
            rest=rest if found.others else "",
            zoom_address=address,
        ),
        "found": found,
        "step": step,
        "sentence": _ticks_sentence(found),
        "crumbs": [(_("Overview"), reverse("home")), (_("Tick duration"), "")],
    }
    return render_lazy_panel(request, "overview/ticks.html", context)


def _ticks_sentence(found: TickDurations) -> str:
    if found.last is None:
        return _("**No ticks in this time range.**")
    pool, last_ms = found.last
    return _("**Last tick (%(pool)s): %(time)s ms; slowest: %(slowest)s ms.**") % {
        "pool": pool,
        "time": format_number(last_ms),
        "slowest": format_number(found.slowest_ms),
    }


def _pool_items(line: PoolOverview, now: datetime) -> Iterator[AttentionItem]:
    pool = line.pool
    url = reverse("pool_detail", args=[pool.pk])
    if pool.state == "stopped":
        more = _("%(reason)s. It stays stopped until its settings are changed.") % {
            "reason": pool.stopped_reason.rstrip(".")
        }
        text = _("Pool **%(pool)s** launches nothing") % {"pool": pool}
        yield AttentionItem(text, url, pool.stopped_at, "bad", more, "oct")
    elif pool.state == BACKING_OFF:
        more = _("The provider had no capacity. Launches resume in %(time)s")
        if pool.failures:
            more = ngettext(
                "%(count)s launch failed. Launches resume in %(time)s",
                "%(count)s launches failed. Launches resume in %(time)s",
                pool.failures,
            )
        more %= {"count": f"{pool.failures:,}", "time": duration_text(pool.backoff_until - now)}
        text = _("Pool **%(pool)s** is backing off") % {"pool": pool}
        yield AttentionItem(text, url, pool.backoff_since, "warn", more, "clock")
    if line.exceeds_target_wait(now):
        more = ngettext(
            "%(count)s waiting, the oldest for %(time)s; target: %(target)s",
            "%(count)s waiting, the oldest for %(time)s; target: %(target)s",
            pool.waiting,
        ) % {
            "count": f"{pool.waiting:,}",
            "time": duration_text(now - pool.oldest_waiting_since),
            "target": duration_text(timedelta(seconds=pool.target_wait_seconds)),
        }
        url = f"{reverse('queue_list')}?pool={pool}"
        text = _("Pool **%(pool)s** exceeds its wait target") % {"pool": pool}
        yield AttentionItem(text, url, pool.oldest_waiting_since, "warn", more, "clock")


def _in_error(count: int) -> str:
    return ngettext("**%(count)s slot** in error", "**%(count)s slots** in error", count)


def _overdue(count: int) -> str:
    return ngettext("**%(count)s slot** past its deadline", "**%(count)s slots** past their deadline", count)


def _silent(count: int) -> str:
    return ngettext(
        "**%(count)s slot** without heartbeat: check the controller",
        "**%(count)s slots** without heartbeat: check the controller",
        count,
    )


def _slot_items(lines: list[PoolOverview]) -> Iterator[AttentionItem]:
    url = reverse("slot_list")
    kinds = (
        ("in_error", "error_since", _in_error, "bad", "state=ERROR"),
        ("overdue", "overdue_since", _overdue, "warn", "overdue=true"),
        ("silent", "silent_since", _silent, "warn", "silent=true"),
    )
    for count_name, since_name, text_of, tone, query in kinds:
        found = [(line, getattr(line, count_name)) for line in lines if getattr(line, count_name)]
        if not found:
            continue
        count = sum(number for _line, number in found)
        since = min(getattr(line, since_name) for line, _number in found)
        more = ", ".join(
            _("%(count)s in %(pool)s") % {"count": f"{number:,}", "pool": line.pool} for line, number in found
        )
        text = text_of(count) % {"count": f"{count:,}"}
        yield AttentionItem(text, f"{url}?{query}", since, tone, more, "oct" if tone == "bad" else "tri")


def _observer_items(now: datetime) -> Iterator[AttentionItem]:
    for run in failing_observers(now):
        url = reverse("observer_detail", args=[run.name])
        if run.error:
            text = _("Observer **%(name)s** failed") % {"name": run.name}
            yield AttentionItem(text, url, run.since, "warn", run.error, "oct")
        else:
            text = _("Observer **%(name)s** is late") % {"name": run.name}
            more = _("It runs every %(time)s. Check that a worker is running.") % {
                "time": duration_text(run.interval)
            }
            yield AttentionItem(text, url, run.since, "warn", more, "clock")
