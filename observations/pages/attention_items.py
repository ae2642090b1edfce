"""Items of the observations app for “Needs attention”."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, Min, Q, Value, When, Window
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy

from lcm.models import LabletDefinition, RevisionOutcome
from lcm.web.attention import AttentionItem, FleetSnapshot
from lcm.web.wording import Plural
from observations.arithmetic.drift import CHANGED, CONFLICT, EXTRA, MISSING
from observations.models.aggregates import ProvisioningClass
from observations.selectors.drift import open_drift

NAMED = 3
KIND_COUNTS = {
    EXTRA: Plural(ngettext_lazy("%(count)s leaked", "%(count)s leaked")),
    CHANGED: Plural(ngettext_lazy("%(count)s changed", "%(count)s changed")),
    MISSING: Plural(ngettext_lazy("%(count)s missing", "%(count)s missing")),
}
_REGRESSED = Q(current_revision__outcome=RevisionOutcome.REGRESSED)


def observation_attention_items(snapshot: FleetSnapshot) -> Iterator[AttentionItem]:
    """Yield regressed revisions, definitions to review, port conflicts and open drift, in two queries."""
    yield from _definitions()
    yield from _drift(snapshot.now)


def _drift(now: datetime) -> Iterator[AttentionItem]:
    rows = open_drift(now).order_by().values("kind")
    kinds = {
        row["kind"]: row
        for row in rows.annotate(
            count=Count("pk"), oldest=Min("first_seen"), first=Min("name"), of=Min("definition__name")
        )
    }
    url = reverse("drift_list") + "?state=open"
    if found := kinds.pop(CONFLICT, None):
        text = ngettext(
            "Port conflict: **%(port)s** of %(definition)s",
            "**%(count)s ports** are used by two sessions each",
            found["count"],
        ) % {"count": f"{found['count']:,}", "port": found["first"], "definition": found["of"]}
        more = _("Another session uses the same port")
        yield AttentionItem(text, f"{url}&kind={CONFLICT}", found["oldest"], "bad", more, "oct")
    if kinds:
        count = sum(row["count"] for row in kinds.values())
        more = ", ".join(KIND_COUNTS[kind].text(row["count"]) for kind, row in sorted(kinds.items()))
        text = ngettext("**%(count)s open port deviation**", "**%(count)s open port deviations**", count)
        text %= {"count": f"{count:,}"}
        url += "".join(f"&kind={kind}" for kind in sorted(kinds))
        yield AttentionItem(text, url, min(row["oldest"] for row in kinds.values()), "warn", more, "diamond")


def _definitions() -> Iterator[AttentionItem]:
    """Yield the first regressed revisions by name, and the others as one item."""
    rows = _to_review()
    regressed = [row for row in rows if row.regressed]
    for row in regressed:
        definition_url = reverse("definition_detail", args=[row.pk])
        text = _("**%(definition)s**: revision %(number)s has regressed") % {
            "definition": row,
            "number": row.number,
        }
        yield AttentionItem(
            text, definition_url, row.regressed_at, "bad", " ".join(row.review_reasons), "oct"
        )
    total = rows[0].total if rows else 0
    if total > len(regressed):
        named = [str(row) for row in rows if not row.regressed]
        if named:
            more = _("%(over)s over-provisioned, %(under)s under-provisioned. Largest effect: %(names)s")
        else:
            more = _("%(over)s over-provisioned, %(under)s under-provisioned")
        more %= {"over": f"{rows[0].over:,}", "under": f"{rows[0].under:,}", "names": ", ".join(named)}
        text = ngettext("**%(count)s definition** to review", "**%(count)s definitions** to review", total)
        text %= {"count": f"{total:,}"}
        url = reverse("definition_list") + "?needs_review=true"
        yield AttentionItem(text, url, rows[0].oldest, "warn", more, "down")


def _to_review() -> list[Any]:
    """Return the first definitions to review, regressed ones first, each with the totals over all."""
    rows: Any = LabletDefinition.objects.filter(needs_review=True).annotate(
        regressed=Case(When(_REGRESSED, then=Value(1)), default=Value(0)),
        number=F("current_revision__number"),
        total=Window(Count("pk")),
        regressed_at=F("current_revision__outcome_at"),
        # Prefer the definitions without a regression: the first regressed ones have items of their own.
        oldest=Coalesce(Window(Min("review_since", filter=~_REGRESSED)), Window(Min("review_since"))),
        over=Window(Count("pk", filter=Q(assessment__provisioning=ProvisioningClass.OVER_PROVISIONED))),
        under=Window(Count("pk", filter=Q(assessment__provisioning=ProvisioningClass.UNDER_PROVISIONED))),
    )
    order = ("-regressed", F("assessment__priority").desc(nulls_last=True), "pk")
    return list(rows.only("name", "version", "review_reasons").order_by(*order)[:NAMED])
