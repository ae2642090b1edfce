"""Page of controllers: the pools they serve, and the heartbeats of their workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.web.access import role_required
from lcm.web.list_page import PageAction
from lcm.web.wording import duration_text
from observations.selectors.controllers import (
    ControllerStatus,
    PoolHeartbeats,
    controller_statuses,
    heartbeats_by_pool,
)
from observations.selectors.discovery import served_pools
from scheduling.selectors.pool_overview import silence_limit

NEW_TOKEN = PageAction(_("New token"), "token_create", Role.ADMIN, "plus", primary=True)


@require_GET
@role_required(Role.VIEWER)
def controller_list(request: HttpRequest) -> HttpResponseBase:
    return render(request, "controllers/list.html", {**_live(), "crumbs": [(gettext("Controllers"), "")]})


@require_GET
@role_required(Role.VIEWER)
def controller_board(request: HttpRequest) -> HttpResponseBase:
    """The part of the page that refreshes while it is open."""
    return render(request, "controllers/board.html", _live())


def _live() -> dict[str, object]:
    now = timezone.now()
    served = served_pools(now)
    controllers, pools = controller_statuses(served, now), heartbeats_by_pool(served, now)
    return {
        "now": now,
        "controllers": controllers,
        "pools": pools,
        "status_line": _status_line(controllers, pools),
        "new_token": NEW_TOKEN,
    }


def _status_line(controllers: Sequence[ControllerStatus], pools: Sequence[PoolHeartbeats]) -> str:
    silent = [each.name for each in controllers if each.state == "silent"]
    if silent:
        return gettext("No heartbeat for more than a minute: %(names)s.") % {"names": ", ".join(silent)}
    for each in controllers:
        if each.clock_skew:
            skew = {"name": each.name, "skew": duration_text(each.clock_skew)}
            if each.clock_skew > timedelta():
                return gettext("The clock of %(name)s is %(skew)s ahead of LCM's.") % skew
            return gettext("The clock of %(name)s is %(skew)s behind LCM's.") % skew
    unserved = [each.pool.name for each in pools if each.state == "unserved" and each.workers]
    if unserved:
        return gettext("No controller serves %(names)s.") % {"names": ", ".join(unserved)}
    silent_workers = sum(each.silent for each in pools)
    if silent_workers:
        text = ngettext(
            "%(count)s worker is silent for more than %(duration)s.",
            "%(count)s workers are silent for more than %(duration)s.",
            silent_workers,
        )
        return text % {"count": f"{silent_workers:,}", "duration": duration_text(silence_limit())}
    serving = sum(each.state == "serving" for each in controllers)
    return _serving_text(serving, pools) if serving else gettext("No controller is serving.")


def _serving_text(serving: int, pools: Sequence[PoolHeartbeats]) -> str:
    served = [each for each in pools if each.state == "serving"]
    workers = sum(each.workers for each in served)
    counted = (
        (ngettext("%(count)s serving controller", "%(count)s serving controllers", serving), serving),
        (ngettext("%(count)s served pool", "%(count)s served pools", len(served)), len(served)),
        (ngettext("%(count)s ready worker", "%(count)s ready workers", workers), workers),
    )
    parts = [text % {"count": f"{count:,}"} for text, count in counted]
    return " · ".join([*parts, gettext("0 silent.")])
