"""Scheduling on the overview: items that need attention, pools, and the queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from lcm.web.charts.lines import Point, line_chart
from lcm.web.charts.scales import format_number
from lcm.web.overview import render_lazy_panel
from lcm.web.wording import duration_text
from scheduling.models import SlotState
from scheduling.pages.pool_board import states_of
from scheduling.pages.texts import booked_text, waiting_text
from scheduling.selectors.observers import failing_observers
from scheduling.selectors.pool_overview import PoolOverview, pool_overviews
from scheduling.selectors.pools import BACKING_OFF, ticks_since

POOLS_SHOWN = 25
TICKS_SHOWN = timedelta(hours=1)
MOST_TICKS = 600


def capacity_attention_items(look: FleetSnapshot) -> Iterator[AttentionItem]:
    """Return stopped pools, slots in error or overdue, silent workers, long waits and failing observers."""
    lines = look.read_once(pool_overviews)
    for line in lines:
        yield from _of_pool(line, look.now)
    yield from _of_slots(lines)
    yield from _of_observers(look.now)


def pools_part(look: FleetSnapshot) -> Mapping[str, Any]:
    lines = look.read_once(pool_overviews)
    rows = [
        (line, share_bar(states_of(line.by_state), of=line.pool.max_slots)) for line in lines[:POOLS_SHOWN]
    ]
    return {"rows": rows, "hidden": max(len(lines) - POOLS_SHOWN, 0)}


def queue_part(look: FleetSnapshot) -> Mapping[str, Any]:
    lines = look.read_once(pool_overviews)
    oldest = min(
        (line.pool.oldest_waiting_since for line in lines if line.pool.oldest_waiting_since), default=None
    )
    return {
        "waiting": _waiting(look),
        "ahead": _ahead(look),
        "oldest": max(look.now - oldest, timedelta(0)) if oldest else None,
        "pools": len(lines),
        "in_time": sum(not line.exceeds_target_wait(look.now) for line in lines),
        "ready": sum(line.by_state.get(SlotState.READY, 0) for line in lines),
        "most": sum(line.pool.max_slots for line in lines if line.pool.enabled),
    }


def waiting_clause(look: FleetSnapshot) -> str:
    """Format the number of waiting sessions; advance bookings are counted separately."""
    waiting, ahead = waiting_text(_waiting(look)), _ahead(look)
    return f"{waiting}, {booked_text(ahead)}" if ahead else waiting


def _waiting(look: FleetSnapshot) -> int:
    return sum(line.pool.waiting for line in look.read_once(pool_overviews))


def _ahead(look: FleetSnapshot) -> int:
    return sum(line.pool.ahead for line in look.read_once(pool_overviews))


@require_GET
@role_required(Role.VIEWER)
def overview_ticks(request: HttpRequest) -> HttpResponseBase:
    """Panel of tick durations; without JavaScript a page of its own."""
    now = timezone.now()
    ticks = ticks_since(now - TICKS_SHOWN, limit=MOST_TICKS)
    points = [Point(at, ms, pool) for at, ms, pool, _counts in ticks]
    context = {
        "now": now,
        "chart": line_chart(points, title=_("Duration of recent ticks (last hour)"), unit="ms"),
        "sentence": _ticks_sentence(points),
        "placed": sum(counts.get("placed", 0) for *_rest, counts in ticks),
        "crumbs": [(_("Overview"), reverse("home")), (_("Tick duration"), "")],
    }
    return render_lazy_panel(request, "overview/ticks.html", context)


def _ticks_sentence(newest_first: Sequence[Point]) -> str:
    if not newest_first:
        return _("**No tick has run in the last hour.** Check that beat is running.")
    last, slowest = newest_first[0], max(point.value for point in newest_first)
    return _("**Last tick (%(pool)s): %(time)s ms; slowest: %(slowest)s ms.**") % {
        "pool": last.what,
        "time": format_number(last.value),
        "slowest": format_number(slowest),
    }


def _of_pool(line: PoolOverview, now: datetime) -> Iterator[AttentionItem]:
    pool = line.pool
    here = reverse("pool_detail", args=[pool.pk])
    if pool.state == "stopped":
        more = _("%(reason)s. It stays stopped until its settings are changed.") % {
            "reason": pool.stopped_reason.rstrip(".")
        }
        text = _("Pool **%(pool)s** launches nothing") % {"pool": pool}
        yield AttentionItem(text, here, pool.stopped_at, "bad", more, "oct")
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
        yield AttentionItem(text, here, pool.backoff_since, "warn", more, "clock")
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


def _of_slots(lines: list[PoolOverview]) -> Iterator[AttentionItem]:
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


def _of_observers(now: datetime) -> Iterator[AttentionItem]:
    for run in failing_observers(now):
        here = reverse("observer_detail", args=[run.name])
        if run.error:
            text = _("Observer **%(name)s** failed") % {"name": run.name}
            yield AttentionItem(text, here, run.since, "warn", run.error, "oct")
        else:
            text = _("Observer **%(name)s** is late") % {"name": run.name}
            more = _("It runs every %(time)s. Check that a worker is running.") % {
                "time": duration_text(run.interval)
            }
            yield AttentionItem(text, here, run.since, "warn", more, "clock")
