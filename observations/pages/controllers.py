"""Page of controllers: the pools they serve, and the heartbeats of their workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.web.access import role_required
from lcm.web.list_page import PageAction
from lcm.web.wording import count_text, duration_text
from observations.selectors.controllers import (
    ControllerStatus,
    PoolHeartbeats,
    controller_statuses,
    heartbeats_by_pool,
)
from observations.selectors.discovery import served_pools
from scheduling.selectors.pool_overview import silence_limit

NEW_TOKEN = PageAction("New token", "token_create", Role.ADMIN, "plus", primary=True)


@require_GET
@role_required(Role.VIEWER)
def controller_list(request: HttpRequest) -> HttpResponseBase:
    return render(request, "controllers/list.html", {**_live(), "crumbs": [("Controllers", "")]})


@require_GET
@role_required(Role.VIEWER)
def controller_board(request: HttpRequest) -> HttpResponseBase:
    """The part of the page that refreshes while it is open."""
    return render(request, "controllers/board.html", _live())


def _live() -> dict[str, object]:
    now = timezone.now()
    served = served_pools(now)
    seen, pools = controller_statuses(served, now), heartbeats_by_pool(served, now)
    return {
        "now": now,
        "controllers": seen,
        "pools": pools,
        "status_line": _status_line(seen, pools),
        "new_token": NEW_TOKEN,
    }


def _status_line(seen: Sequence[ControllerStatus], pools: Sequence[PoolHeartbeats]) -> str:
    silent = [each.name for each in seen if each.state == "silent"]
    if silent:
        return f"No heartbeat for more than a minute: {', '.join(silent)}."
    for each in seen:
        if each.clock_skew:
            skew = duration_text(each.clock_skew)
            if each.clock_skew > timedelta():
                return f"The clock of {each.name} is {skew} ahead of LCM's."
            return f"The clock of {each.name} is {skew} behind LCM's."
    alone = [each.pool.name for each in pools if each.state == "unserved" and each.workers]
    if alone:
        return f"No controller serves {', '.join(alone)}."
    lost = sum(each.silent for each in pools)
    if lost == 1:
        return f"1 worker is silent for more than {duration_text(silence_limit())}."
    if lost:
        return f"{lost:,} workers are silent for more than {duration_text(silence_limit())}."
    serving = sum(each.state == "serving" for each in seen)
    return _serving_text(serving, pools) if serving else "No controller is serving."


def _serving_text(serving: int, pools: Sequence[PoolHeartbeats]) -> str:
    served = [each for each in pools if each.state == "serving"]
    workers = sum(each.workers for each in served)
    parts = (
        count_text(serving, "serving controller"),
        count_text(len(served), "served pool"),
        count_text(workers, "ready worker"),
        "0 silent",
    )
    return " · ".join(parts)
