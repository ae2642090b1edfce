"""Pool pages: the list, the board, create, edit and delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from lcm.domain.errors import InvalidInput
from lcm.domain.roles import Role
from lcm.models import LabletDefinition
from lcm.selectors.organisation import changes_of
from lcm.web.access import role_required
from lcm.web.charts.bars import share_bar
from lcm.web.charts.sparklines import sparkline
from lcm.web.form_page import FormPage, actor_of, form_view, service_call
from lcm.web.list_page import list_view
from scheduling.models import OCCUPIED, Pool, SlotState
from scheduling.pages.lists import POOLS
from scheduling.pages.pool_board import board_of, resource_meters, states_of, with_binding
from scheduling.pages.pool_forms import (
    DEFAULT_RUNTIME,
    EDITED,
    NewPoolForm,
    PoolFields,
    PoolForm,
    SchedulerForm,
)
from scheduling.pages.schedulers import plugin_notices, scheduler_of
from scheduling.pages.supply import settings_shown, supply_of
from scheduling.pages.texts import counts_text, pool_notices, pool_sentence
from scheduling.placement.framework.configuration import DEFAULT_CONFIGURATION
from scheduling.selectors.pools import figures_of, pools_with_state, ticks
from scheduling.selectors.unknown_queues import unknown_queues, unknown_queues_text
from scheduling.services.pools import create_pool, delete_pool, update_pool

TICKS_SHOWN = 10
# Ticks are events of their own: there is no line over the quiet time between them.
SEPARATE = 0.001


pool_list = list_view(POOLS)


@require_GET
@role_required(Role.VIEWER)
def pool_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    live = _live(request, pk)
    crumbs = [(_("Capacity"), reverse("pool_list")), (live["pool"].name, "")]
    return render(request, "capacity/pool.html", {**live, "crumbs": crumbs})


@require_GET
@role_required(Role.VIEWER)
def pool_board(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """The live part of a pool's page."""
    return render(request, "capacity/board.html", _live(request, pk))


def _live(request: HttpRequest, pk: UUID) -> dict[str, Any]:
    now = timezone.now()
    pool = get_object_or_404(pools_with_state(now), pk=pk)
    figures = figures_of(pool, now)
    meters = with_binding(resource_meters(figures.allocated, figures.capacity))
    supply = supply_of(pool, now=now)
    newest = list(ticks().filter(pool=pool).order_by("-started_at", "-pk")[:TICKS_SHOWN])
    return {
        "pool": pool,
        "now": now,
        "figures": figures,
        "meters": meters,
        "failed": figures.in_states([SlotState.ERROR]),
        "sentence": pool_sentence(pool, figures, now=now),
        "notices": [*pool_notices(pool, supply, now=now), *plugin_notices(newest)],
        "states": share_bar(states_of(figures.by_state), of=pool.max_slots),
        "board": board_of(
            pool,
            now=now,
            occupied=figures.in_states([*OCCUPIED, SlotState.ERROR]),
            page=_page(request),
        ),
        "ticks": [(tick, counts_text(tick.counts)) for tick in newest],
        "spark": sparkline(
            [(tick.started_at.timestamp(), tick.duration_ms) for tick in reversed(newest)],
            gap=SEPARATE,
            title=ngettext(
                "Duration of the last %(count)s tick", "Duration of the last %(count)s ticks", len(newest)
            )
            % {"count": len(newest)},
        ),
        "scheduler": scheduler_of(pool, newest),
        "supply": supply,
        "settings": list(settings_shown(pool.runtime_settings)),
        "changes": changes_of(pool),
    }


def _page(request: HttpRequest) -> int:
    """Return the requested page of the board; the first if the number is invalid."""
    requested = request.GET.get("page", "")
    return int(requested) if requested.isascii() and requested.isdecimal() and len(requested) < 7 else 1


@form_view(Role.ADMIN)
def pool_create(request: HttpRequest) -> FormPage | HttpResponseBase:
    def save(data: Mapping[str, Any]) -> Pool:
        try:
            return create_pool(**data, actor=actor_of(request))
        except InvalidInput as error:
            raise at_form_fields(error) from error

    page = FormPage(
        title=_("New pool"),
        text=_("A pool is a kind of worker with its number of slots, their capacity and their runtime."),
        form=NewPoolForm,
        submit=_("Create pool"),
        save=save,
        done=lambda pool: _("Pool %(pool)s created.") % {"pool": pool},
        next=lambda pool: reverse("pool_detail", args=[pool.pk]),
        crumbs=[(_("Capacity"), reverse("pool_list")), (_("New pool"), "")],
        initial={"runtime": request.GET.get("runtime", DEFAULT_RUNTIME)},
        back=reverse("pool_list"),
        template="capacity/pool_form.html",
    )
    return _draft(request, page) or page


@form_view(Role.ADMIN)
def pool_edit(request: HttpRequest, pk: UUID) -> FormPage | HttpResponseBase:
    pool = get_object_or_404(Pool, pk=pk)

    def save(data: Mapping[str, Any]) -> Pool:
        try:
            return update_pool(pool=get_object_or_404(Pool, pk=pk), actor=actor_of(request), **data)
        except InvalidInput as error:
            raise at_form_fields(error) from error

    page = FormPage(
        title=_("Edit %(pool)s") % {"pool": pool},
        text=_(
            "Saving clears a stop or back-off, so the pool can launch at once. Running slots keep their size."
        ),
        form=PoolForm,
        submit=_("Save pool"),
        save=save,
        done=_("Pool %(pool)s saved.") % {"pool": pool},
        initial={name: getattr(pool, name) for name in (*EDITED, "runtime")},
        back=reverse("pool_detail", args=[pool.pk]),
        crumbs=_crumbs(pool, _("Edit")),
        template="capacity/pool_form.html",
    )
    return _draft(request, page) or page


def _draft(request: HttpRequest, page: FormPage) -> HttpResponseBase | None:
    """Show the form again with one more row or the result of a connection test; save nothing."""
    if request.POST.keys().isdisjoint(("add_row", "test_worker")):
        return None
    assert issubclass(page.form, PoolFields)
    form = page.form.draft(request.POST, page.initial)
    return render(request, page.template, {"page": page, "form": form, "crumbs": page.crumbs})


@form_view(Role.ADMIN)
def pool_scheduler(request: HttpRequest, pk: UUID) -> FormPage:
    pool = get_object_or_404(Pool, pk=pk)

    def save(data: Mapping[str, Any]) -> None:
        saved = update_pool(pool=get_object_or_404(Pool, pk=pk), actor=actor_of(request), **data)
        warning = unknown_queues_text(unknown_queues(saved.scheduler))
        if warning:
            messages.warning(request, warning)

    first = (
        _("**%(pool)s has its own scheduler.**")
        if pool.scheduler
        else _("**%(pool)s uses the default scheduler.**")
    ) % {"pool": pool}
    rest = _(
        "The document lists the actions of a tick and its plugins in order. "
        "An invalid document is rejected with the line number. An empty document restores the default."
    )
    return FormPage(
        title=_("Scheduler of %(pool)s") % {"pool": pool},
        text=f"{first} {rest}",
        form=SchedulerForm,
        submit=_("Save scheduler"),
        save=save,
        done=_("Scheduler of %(pool)s saved. The next tick uses it.") % {"pool": pool},
        initial={"scheduler": pool.scheduler or DEFAULT_CONFIGURATION},
        crumbs=_crumbs(pool, _("Scheduler")),
        template="capacity/scheduler_form.html",
    )


@form_view(Role.ADMIN)
def pool_delete(request: HttpRequest, pk: UUID) -> FormPage:
    pool = get_object_or_404(Pool, pk=pk)

    text = _(
        "**Only an empty pool can be deleted**: no slot has a worker, and no session or reservation "
        "uses it. Its ended reservations and scheduling decisions are deleted too. Sessions, usage and the "
        "change log keep the name of the pool."
    )
    return FormPage(
        title=_("Delete %(pool)s?") % {"pool": pool},
        text=f"{text} {_definitions_that_name(pool)}".rstrip(),
        submit=_("Delete pool"),
        danger=True,
        save=service_call(request, delete_pool, pool=pool),
        done=_("Pool %(pool)s deleted.") % {"pool": pool.name},
        next=reverse("pool_list"),
        crumbs=_crumbs(pool, _("Delete")),
    )


def _crumbs(pool: Pool, last: str) -> list[tuple[str, str]]:
    page = reverse("pool_detail", args=[pool.pk])
    return [(_("Capacity"), reverse("pool_list")), (pool.name, page), (last, "")]


def _definitions_that_name(pool: Pool) -> str:
    count = LabletDefinition.objects.filter(pool=pool.name).count()
    if not count:
        return ""
    text = ngettext(
        "%(count)s definition uses this pool and must be edited before the next session.",
        "%(count)s definitions use this pool and must be edited before the next session.",
        count,
    )
    return text % {"count": f"{count:,}"}


def at_form_fields(error: InvalidInput) -> InvalidInput:
    """Show the error of a runtime setting at the field of the runtime settings."""
    fields: dict[str, list[str]] = {}
    for name, texts in error.fields.items():
        fields.setdefault(name.split(".", 1)[0], []).extend(texts)
    return InvalidInput(fields)
