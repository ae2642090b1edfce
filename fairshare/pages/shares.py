"""The fair-share page: tree with weights, usage by day, policy and usage consistency check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from fairshare.models import FairShareOrder, Normalisation
from fairshare.models.levels import Level
from fairshare.pages.exports import SHARES
from fairshare.pages.texts import SEARCH_RESULTS_NOTE, half_life_text, rank_sentence, sentence, weights_text
from fairshare.pages.usage_range import usage_range
from fairshare.selectors.shares import pools_to_share, search_tree, shares, tree_rows
from fairshare.selectors.subject_names import with_names
from fairshare.selectors.trees import policy_read_with
from fairshare.selectors.usage import Period, last_check, top_domains, usage_by_day
from fairshare.services.policies import warnings_for
from fairshare.services.usage_rebuild import start_rebuild
from lcm.domain.errors import LcmError
from lcm.domain.resources import RESOURCE_NAMES
from lcm.domain.roles import Role
from lcm.models.resources import HOUR_NAMES, RESOURCE_LABELS
from lcm.services.task_queue import enqueue_task
from lcm.web.access import htmx_of, role_required
from lcm.web.charts.columns import stacked
from lcm.web.export import export
from lcm.web.form_page import FormPage, FormResult, form_view, redirect_with_message, service_call
from scheduling.models import Pool


@require_GET
@role_required(Role.VIEWER)
def fair_share(request: HttpRequest) -> HttpResponseBase:
    pools = list(pools_to_share())
    if not pools:
        return render(request, "fairshare/empty.html", {"crumbs": [(_("Fair share"), "")]})
    pool = next((candidate for candidate in pools if candidate.name == request.GET.get("pool")), pools[0])
    wanted = request.GET.get("format", "")
    if wanted in ("csv", "json"):
        return export(SHARES, with_names(shares().filter(pool=pool)), sort="pk", file_format=wanted)
    context = {**_tree(request, pool), "pools": pools, "crumbs": [(_("Fair share"), "")]}
    if htmx_of(request):
        return render(request, "fairshare/tree.html", context)
    return render(request, "fairshare/page.html", {**context, **_panels_context(request, context)})


@require_POST
@role_required(Role.OPERATOR)
def usage_check(request: HttpRequest) -> HttpResponseBase:
    """Enqueue a usage consistency check."""
    back = reverse("fair_share")
    try:
        enqueue_task("fairshare.tasks.check_usage")
    except LcmError as error:
        messages.error(request, error.message)
        return redirect_with_message(request, FormResult("", back))
    return redirect_with_message(request, FormResult(_("Usage consistency check enqueued."), back))


@form_view(Role.ADMIN)
def usage_rebuild(request: HttpRequest) -> FormPage:
    return FormPage(
        title=_("Rebuild daily usage?"),
        text=_(
            "The buckets of every day with records are rebuilt from them, a day at a time. "
            "Records are not touched."
        ),
        submit=_("Rebuild usage"),
        save=service_call(request, start_rebuild),
        next=lambda job: reverse("job_detail", args=[job.pk]),
        crumbs=[(_("Fair share"), reverse("fair_share")), (_("Rebuild usage"), "")],
    )


def _tree(request: HttpRequest, pool: Pool) -> dict[str, Any]:
    """Return the rows of the tree: expanded branches, or search results."""
    query = request.GET.get("q", "").strip()[:100]
    policy = policy_read_with(pool)
    tree = search_tree(pool, query) if query else tree_rows(pool, _opened(request))
    return {
        "pool": pool,
        "policy": policy,
        "rank_sentence": rank_sentence(policy),
        "query": query,
        "export_query": urlencode({"pool": pool.name}),
        "tree": tree,
        "lines": [(row, _toggled(request, pool, tree.opened, row.share.subject_id)) for row in tree.rows],
    }


def _panels_context(request: HttpRequest, shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context of the panels next to the tree."""
    pool = shown["pool"]
    now = timezone.now()
    resource = request.GET.get("resource", "")
    resource = resource if resource in RESOURCE_NAMES else RESOURCE_NAMES[0]
    shown_range = usage_range(request, now=now)
    period = Period(shown_range.first, shown_range.last, pool.name)
    top = top_domains(period, resource)
    chart = stacked(usage_by_day(period, Level.DOMAIN, resource, top), unit=str(HOUR_NAMES[resource]))
    own, default = weights_text(shown["policy"])
    return {
        "resources": [
            (_with(request, pool, resource=name), RESOURCE_LABELS[name], name == resource)
            for name in RESOURCE_NAMES
        ],
        "resource": resource,
        "range": shown_range,
        "chart": chart,
        "sentence": str(SEARCH_RESULTS_NOTE)
        if shown["query"]
        else sentence(shown["tree"].rows, shown["policy"], pool.calculated_at, used=bool(top)),
        "normalised": Normalisation(shown["policy"].normalisation).label,
        "order": FairShareOrder(shown["policy"].order).label,
        "half_life": half_life_text(shown["policy"]),
        "weights": own,
        "default_weights": default,
        "warnings": warnings_for(pool),
        "check": last_check(),
    }


def _with(request: HttpRequest, pool: Pool, **values: str) -> str:
    """Return the query string of this page with some values changed."""
    query = request.GET.copy()
    query["pool"] = pool.name
    query.update(values)
    return query.urlencode()


def _opened(request: HttpRequest) -> list[UUID] | None:
    if "open" not in request.GET:
        return None
    keys = []
    for text in request.GET["open"].split(",")[:200]:
        try:
            keys.append(UUID(text))
        except ValueError:
            continue
    return keys


def _toggled(request: HttpRequest, pool: Pool, opened: Sequence[UUID], key: UUID) -> str:
    """Return the URL of this page with a branch expanded or collapsed."""
    keys = [other for other in opened if other != key] if key in opened else [*opened, key]
    query = request.GET.copy()
    query["pool"], query["open"] = pool.name, ",".join(other.hex for other in keys)
    query.pop("q", None)
    return query.urlencode()
