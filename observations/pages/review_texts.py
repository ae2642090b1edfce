"""Texts of evidence and previews."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.utils import translation
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from lcm.models.resources import RESOURCE_LABELS, RESOURCE_UNITS
from lcm.web.wording import list_text
from observations.arithmetic.impact import LIMIT_NAMES, Packing, highest_risk, risk_text
from observations.arithmetic.measures import text
from observations.arithmetic.recommendation import BASES, propose
from observations.arithmetic.statistics import LEVELS
from observations.models.resource_labels import resource_amount
from observations.services.requirement_preview import (
    CUSTOM,
    KEEP,
    RequirementChoice,
    RequirementPreview,
    ResourceImpact,
)

TONES = {"low": "ok", "medium": "warn", "high": "bad", "unknown": "idle"}
TRUST_TONES = {"high": "ok", "medium": "ok", "low": "warn", "not_enough_data": "idle"}
SHAPES = {"ok": "check", "warn": "tri", "bad": "oct", "idle": "dash"}
LABELS = {
    "max": _("Max"),
    "p95": _("p95"),
    "avg": _("Avg"),
    "latest": _("Latest"),
    "recommended": _("Recommended"),
}
LEVEL_LABELS = {"low": _("Low"), "medium": _("Medium"), "high": _("High")}
RISK_LABELS = {**LEVEL_LABELS, "unknown": _("Unknown")}
CONFIDENCE_LABELS = {**LEVEL_LABELS, "not_enough_data": _("Not enough data")}


@dataclass(frozen=True)
class BasisOption:
    """A basis and its value for one resource; without a value it is disabled."""

    basis: str
    label: str
    value: str
    chosen: bool
    known: bool = True


@dataclass(frozen=True)
class OptionRow:
    """Bases of one resource; `sessions_by_source` has the sources with figures."""

    resource: str
    label: str
    unit: str
    now: str
    source: str
    sessions_by_source: Mapping[str, int]
    options: list[BasisOption]
    is_custom: bool
    # The custom value as it was entered, and what is wrong with the choice.
    custom: str
    problem: str = ""


def options_of(
    preview: RequirementPreview,
    choices: Mapping[str, RequirementChoice],
    entered: Mapping[str, str],
    problems: Mapping[str, str],
) -> list[OptionRow]:
    rows = [_row(impact, choices.get(impact.resource, RequirementChoice())) for impact in preview.impacts]
    return [
        replace(
            row, custom=row.custom or entered.get(row.resource, ""), problem=problems.get(row.resource, "")
        )
        for row in rows
    ]


def _row(impact: ResourceImpact, choice: RequirementChoice) -> OptionRow:
    name, view = impact.resource, impact.view
    options = [BasisOption(KEEP, gettext("Keep"), text(impact.required), choice.basis == KEEP)]
    for basis in BASES:
        known = view.summary is not None and (basis != "latest" or view.summary.latest is not None)
        value = text(propose(name, basis, view.summary, view.source).value) if known and view.summary else "–"
        options.append(BasisOption(basis, str(LABELS[basis]), value, choice.basis == basis, known))
    return OptionRow(
        resource=name,
        label=str(RESOURCE_LABELS[name]),
        unit=str(RESOURCE_UNITS[name]),
        now=resource_amount(name, impact.required),
        source=view.source,
        sessions_by_source={
            source: n for source, n in view.sessions_by_source.items() if n or source == view.source
        },
        options=options,
        is_custom=choice.basis == CUSTOM,
        custom="" if choice.custom is None else f"{choice.custom:f}",
    )


assert set(LABELS) == set(BASES)


@dataclass(frozen=True)
class ImpactFigure:
    """A figure in the preview of the impact, with a tone and its evidence."""

    label: str
    value: str
    note: str = ""
    tone: str = ""
    evidence: list[str] = field(default_factory=list)

    @property
    def shape(self) -> str:
        return SHAPES.get(self.tone, "dot")


def impact_figures(preview: RequirementPreview, *, now: datetime) -> list[ImpactFigure]:
    """Return the exceedances, capacity, savings, risk and confidence of a preview."""
    return [_exceeded(preview), _fit(preview), _saved(preview), _risk(preview), _trust(preview)]


def blank_figures(preview: RequirementPreview, *, now: datetime) -> list[ImpactFigure]:
    """Return the figures without values: an invalid choice has no effect to show."""
    return [ImpactFigure(each.label, "–") for each in impact_figures(preview, now=now)]


def _exceeded(preview: RequirementPreview) -> ImpactFigure:
    label = gettext("Sessions that would exceed the proposal")
    counts = [(impact, impact.risk.exceeding) for impact in preview.impacts if impact.risk.n]
    if not counts:
        return ImpactFigure(label, gettext("unknown"), gettext("no session observed yet"))
    n = max(impact.risk.n for impact, _ in counts)
    over = [(impact, count) for impact, count in counts if count]
    if not over:
        return ImpactFigure(label, gettext("none of %(count)s") % {"count": f"{n:,}"})
    most = max(count for _, count in over)
    if len(over) == 1:
        where = gettext("on %(resource)s only")
        where %= {"resource": resource_word(over[0][0].resource)}
    else:
        each = gettext("%(count)s on %(resource)s")
        where = list_text(
            [
                each % {"count": f"{count:,}", "resource": resource_word(impact.resource)}
                for impact, count in over
            ]
        )
    return ImpactFigure(
        label,
        gettext("%(count)s of %(total)s") % {"count": f"{most:,}", "total": f"{n:,}"},
        where,
        evidence=[_by_how_much(impact) for impact, _count in over],
    )


def _by_how_much(impact: ResourceImpact) -> str:
    if impact.exceeding_recent:
        text = gettext(
            "%(resource)s: exceeded by at most %(most)s; %(recent)s of these sessions in the last 30 days."
        )
    else:
        text = gettext(
            "%(resource)s: exceeded by at most %(most)s; none of these sessions in the last 30 days."
        )
    return text % {
        "resource": RESOURCE_LABELS[impact.resource],
        "most": resource_amount(impact.resource, impact.worst_excess),
        "recent": f"{impact.exceeding_recent:,}",
    }


def resource_word(resource: str) -> str:
    """Return the name of a resource or another limit inside a sentence."""
    return LIMIT_NAMES[resource].translated(translation)


def _fit(preview: RequirementPreview) -> ImpactFigure:
    before, after = preview.empty_before, preview.empty_after
    label = gettext("Sessions that fit in the fleet")
    if not before.workers:
        return ImpactFigure(label, gettext("unknown"), gettext("no suitable worker is ready now"))
    moves = before.sessions != after.sessions
    each = f"{each_worker(before)} → {each_worker(after)}" if moves else each_worker(after)
    limits = ", ".join(_limit(name, before, after) for name in after.by_limit)
    how = (
        gettext("Upper bound, because its nodes may run on several workers.")
        if after.is_bound
        else gettext("Per worker: %(sessions)s.") % {"sessions": each}
    )
    if limits:
        by_limit = gettext("By limit: %(limits)s.") % {"limits": limits}
        how = f"{how} {by_limit}"
    free = gettext("On current free capacity: %(sessions)s, limited by %(limit)s.") % {
        "sessions": _before_after(preview.free_before, preview.free_after),
        "limit": resource_word(preview.free_after.limited_by),
    }
    workers = ngettext(
        "on %(count)s empty worker, limited by %(limit)s",
        "on %(count)s empty workers, limited by %(limit)s",
        after.workers,
    ) % {"count": f"{after.workers:,}", "limit": resource_word(after.limited_by)}
    return ImpactFigure(label, _before_after(before, after), workers, evidence=[how, free])


def _before_after(before: Packing, after: Packing) -> str:
    """Return text such as `12 → 16` or `at most 16`."""
    shown = f"{after.sessions:,}"
    if before.sessions != after.sessions:
        shown = f"{before.sessions:,} → {shown}"
    return gettext("at most %(count)s") % {"count": shown} if after.is_bound else shown


def each_worker(packing: Packing) -> str:
    share = packing.sessions / packing.workers
    return f"{share:.0f}" if share == int(share) else f"{share:.1f}"


def _limit(name: str, before: Packing, after: Packing) -> str:
    old, new = before.by_limit.get(name, 0), after.by_limit[name]
    return f"{resource_word(name)} {new:,}" if old == new else f"{resource_word(name)} {old:,} → {new:,}"


def _saved(preview: RequirementPreview) -> ImpactFigure:
    """Return what the last thirty days would have saved or cost."""
    label, saving = gettext("Effect over the last 30 days"), preview.saving
    if not preview.evidence.assessment.held_seconds:
        return ImpactFigure(label, gettext("unknown"), gettext("no counted session in that time"))
    parts = []
    if saving.cpu:
        less, more = gettext("%(count)s core-hours less"), gettext("%(count)s core-hours more")
        parts.append((less if saving.cpu > 0 else more) % {"count": _hours(saving.cpu)})
    if saving.memory:
        less = gettext("%(count)s GB-hours of memory less")
        more = gettext("%(count)s GB-hours of memory more")
        parts.append((less if saving.memory > 0 else more) % {"count": _hours(saving.memory)})
    if not parts:
        return ImpactFigure(label, gettext("the same"))
    return ImpactFigure(label, parts[0], "".join(parts[1:]))


def _hours(units: int) -> str:
    """Return whole hours, with decimals below ten."""
    return text(abs(units)) if abs(units) < 1000 else f"{abs(units) // 100:,}"


def _risk(preview: RequirementPreview) -> ImpactFigure:
    level = highest_risk([impact.risk for impact in preview.impacts])
    tone = TONES[level]
    texts = [risk_text(impact.risk).translated(translation) for impact in preview.impacts]
    return ImpactFigure(gettext("Risk"), str(RISK_LABELS[level]), tone=tone, evidence=texts)


def _trust(preview: RequirementPreview) -> ImpactFigure:
    """Return the lowest confidence of the changed resources, or of all if none changes."""
    impacts = [impact for impact in preview.impacts if impact.changes] or preview.impacts
    weakest = min(impacts, key=lambda impact: LEVELS.index(impact.view.confidence.level))
    confidence = weakest.view.confidence
    first, *rest = (reason.translated(translation) for reason in confidence.reasons)
    text = gettext("%(resource)s: %(reason)s.")
    texts = [text % {"resource": RESOURCE_LABELS[weakest.resource], "reason": reason} for reason in rest]
    return ImpactFigure(
        gettext("Confidence"),
        str(CONFIDENCE_LABELS[confidence.level]),
        first,
        TRUST_TONES[confidence.level],
        texts,
    )
