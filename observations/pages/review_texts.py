"""Texts of evidence and previews."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from observations.arithmetic.impact import GPU, LEASES, PORTS, UNBOUND, Packing, highest_risk, risk_text
from observations.arithmetic.measures import CPU, MEMORY, STORAGE, text
from observations.arithmetic.recommendation import BASES, propose
from observations.arithmetic.statistics import LEVELS
from observations.models.resource_labels import RESOURCE_LABELS, RESOURCE_UNITS, resource_amount
from observations.services.outcomes import DECIDING_SESSIONS, RevisionProgress
from observations.services.requirement_preview import (
    CUSTOM,
    KEEP,
    RequirementChoice,
    RequirementPreview,
    ResourceImpact,
)

TONES = {"low": "ok", "medium": "warn", "high": "bad", "unknown": "idle"}
TRUST_TONES = {"high": "ok", "medium": "ok", "low": "warn", "insufficient": "idle"}
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
CONFIDENCE_LABELS = {**LEVEL_LABELS, "insufficient": _("Insufficient")}
# Resources and other limits inside a sentence.
WORDS = {
    CPU: _("CPU"),
    MEMORY: _("memory"),
    STORAGE: _("storage"),
    GPU: _("GPUs"),
    PORTS: _("ports"),
    LEASES: _("leases"),
    UNBOUND: _("nothing"),
}


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
    custom: str


def options_of(preview: RequirementPreview, choices: Mapping[str, RequirementChoice]) -> list[OptionRow]:
    return [_row(impact, choices.get(impact.resource, RequirementChoice())) for impact in preview.impacts]


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
class ReviewAnswer:
    """A question of the review with a short answer and its evidence."""

    question: str
    answer: str
    more: str = ""
    tone: str = ""
    evidence: list[str] = field(default_factory=list)

    @property
    def shape(self) -> str:
        return SHAPES.get(self.tone, "dot")


def answers_of(preview: RequirementPreview, *, now: datetime) -> list[ReviewAnswer]:
    """Answer the review's questions: exceedances, capacity, savings, risk and confidence."""
    return [_exceeded(preview), _fit(preview), _saved(preview), _risk(preview), _trust(preview)]


def _exceeded(preview: RequirementPreview) -> ReviewAnswer:
    question = gettext("Sessions that would exceed the proposal")
    counts = [(impact, impact.risk.exceeding) for impact in preview.impacts if impact.risk.n]
    if not counts:
        return ReviewAnswer(question, gettext("unknown"), gettext("no session observed yet"))
    n = max(impact.risk.n for impact, _ in counts)
    over = [(impact, count) for impact, count in counts if count]
    if not over:
        return ReviewAnswer(question, gettext("none of %(count)s") % {"count": f"{n:,}"})
    most = max(count for _, count in over)
    if len(over) == 1:
        where = gettext("on %(resource)s, none on anything else")
        where %= {"resource": resource_word(over[0][0].resource)}
    else:
        each = gettext("%(count)s on %(resource)s")
        where = ", ".join(
            each % {"count": f"{count:,}", "resource": resource_word(impact.resource)}
            for impact, count in over
        )
    return ReviewAnswer(
        question,
        gettext("%(count)s of %(total)s") % {"count": f"{most:,}", "total": f"{n:,}"},
        where,
        evidence=[_by_how_much(impact) for impact, _count in over],
    )


def _by_how_much(impact: ResourceImpact) -> str:
    recent = f"{impact.exceeding_recent:,}" if impact.exceeding_recent else gettext("none")
    return gettext("%(resource)s: by %(most)s at most; %(recent)s of them in the last 30 days.") % {
        "resource": RESOURCE_LABELS[impact.resource],
        "most": resource_amount(impact.resource, impact.worst_excess),
        "recent": recent,
    }


def resource_word(resource: str) -> str:
    """Return the name of a resource or another limit inside a sentence."""
    return str(WORDS.get(resource, resource))


def _fit(preview: RequirementPreview) -> ReviewAnswer:
    before, after = preview.empty_before, preview.empty_after
    question = gettext("Sessions that fit in the fleet")
    if not before.workers:
        return ReviewAnswer(question, gettext("unknown"), gettext("no suitable worker is ready now"))
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
    return ReviewAnswer(question, _before_after(before, after), workers, evidence=[how, free])


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


def _saved(preview: RequirementPreview) -> ReviewAnswer:
    """Return what the last thirty days would have saved or cost."""
    question, saving = gettext("Effect over the last 30 days"), preview.saving
    if not preview.evidence.assessment.held_seconds:
        return ReviewAnswer(question, gettext("unknown"), gettext("no counted session in that time"))
    parts = []
    if saving.cpu:
        less, more = gettext("%(count)s core-hours less"), gettext("%(count)s core-hours more")
        parts.append((less if saving.cpu > 0 else more) % {"count": _hours(saving.cpu)})
    if saving.memory:
        less = gettext("%(count)s GB-hours of memory less")
        more = gettext("%(count)s GB-hours of memory more")
        parts.append((less if saving.memory > 0 else more) % {"count": _hours(saving.memory)})
    if not parts:
        return ReviewAnswer(question, gettext("the same"))
    second = gettext("and %(effect)s") % {"effect": parts[1]} if len(parts) > 1 else ""
    return ReviewAnswer(question, parts[0], second)


def _hours(units: int) -> str:
    """Return whole hours, with decimals below ten."""
    return text(abs(units)) if abs(units) < 1000 else f"{abs(units) // 100:,}"


def _risk(preview: RequirementPreview) -> ReviewAnswer:
    level = highest_risk([impact.risk for impact in preview.impacts])
    tone = TONES[level]
    texts = [risk_text(impact.risk) for impact in preview.impacts]
    return ReviewAnswer(gettext("Risk"), str(RISK_LABELS[level]), tone=tone, evidence=texts)


def _trust(preview: RequirementPreview) -> ReviewAnswer:
    """Return the lowest confidence of the changed resources, or of all if none changes."""
    impacts = [impact for impact in preview.impacts if impact.changes] or preview.impacts
    weakest = min(impacts, key=lambda impact: LEVELS.index(impact.view.confidence.level))
    confidence = weakest.view.confidence
    first, *rest = confidence.reasons
    texts = [f"{RESOURCE_LABELS[weakest.resource]}: {', '.join(rest)}."] if rest else []
    return ReviewAnswer(
        gettext("Confidence"),
        str(CONFIDENCE_LABELS[confidence.level]),
        first,
        TRUST_TONES[confidence.level],
        texts,
    )


def progress_text(progress: RevisionProgress) -> str:
    """Return the sessions that exceeded each resource, or how many stayed within limits."""
    if not progress.exceeded:
        return gettext("%(count)s of %(total)s sessions stayed within limits") % {
            "count": progress.observed,
            "total": DECIDING_SESSIONS,
        }
    texts = []
    for resource, times in progress.exceeded.items():
        n = progress.measured[resource]
        text = ngettext(
            "%(resource)s exceeded by %(times)s of %(count)s session",
            "%(resource)s exceeded by %(times)s of %(count)s sessions",
            n,
        )
        texts.append(text % {"resource": resource_word(resource), "times": times, "count": n})
    return ", ".join(texts)
