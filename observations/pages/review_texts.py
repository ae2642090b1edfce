"""Texts of evidence and previews."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lcm.web.wording import count_text
from observations.arithmetic.impact import WORDS, Packing, highest_risk, risk_text
from observations.arithmetic.measures import RULES, text, with_unit
from observations.arithmetic.recommendation import BASES, propose
from observations.arithmetic.statistics import LEVELS
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
LABELS = {"max": "Max", "p95": "p95", "avg": "Avg", "latest": "Latest", "recommended": "Recommended"}


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
    name, view, rule = impact.resource, impact.view, RULES[impact.resource]
    options = [BasisOption(KEEP, "Keep", text(impact.required), choice.basis == KEEP)]
    for basis in BASES:
        known = view.summary is not None and (basis != "latest" or view.summary.latest is not None)
        value = text(propose(name, basis, view.summary, view.source).value) if known and view.summary else "–"
        options.append(BasisOption(basis, LABELS[basis], value, choice.basis == basis, known))
    return OptionRow(
        resource=name,
        label=rule.label,
        unit=rule.unit,
        now=with_unit(name, impact.required),
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
    question = "Sessions that would exceed it"
    counts = [(impact, impact.risk.exceeding) for impact in preview.impacts if impact.risk.n]
    if not counts:
        return ReviewAnswer(question, "unknown", "no session observed yet")
    n = max(impact.risk.n for impact, _ in counts)
    over = [(impact, count) for impact, count in counts if count]
    if not over:
        return ReviewAnswer(question, f"none of {n:,}")
    most = max(count for _, count in over)
    where = ", ".join(f"{count:,} on {resource_word(impact.resource)}" for impact, count in over)
    if len(over) == 1:
        where = f"on {resource_word(over[0][0].resource)}, none on anything else"
    return ReviewAnswer(
        question, f"{most:,} of {n:,}", where, evidence=[_by_how_much(impact) for impact, _ in over]
    )


def _by_how_much(impact: ResourceImpact) -> str:
    recent = f"{impact.exceeding_recent:,}" if impact.exceeding_recent else "none"
    most = with_unit(impact.resource, impact.worst_excess)
    return f"{RULES[impact.resource].label}: by {most} at most; {recent} of them in the last 30 days."


def resource_word(resource: str) -> str:
    return WORDS[resource]


def _fit(preview: RequirementPreview) -> ReviewAnswer:
    before, after = preview.empty_before, preview.empty_after
    question = "Sessions that fit in the fleet"
    if not before.workers:
        return ReviewAnswer(question, "unknown", "no suitable worker is ready now")
    moves = before.sessions != after.sessions
    each = f"{each_worker(before)} → {each_worker(after)}" if moves else each_worker(after)
    limits = ", ".join(_limit(name, before, after) for name in after.by_limit)
    how = (
        "Upper bound, because its nodes may run on several workers."
        if after.is_bound
        else f"Per worker: {each}."
    )
    free = _before_after(preview.free_before, preview.free_after)
    return ReviewAnswer(
        question,
        _before_after(before, after),
        f"on {count_text(after.workers, 'empty worker')}, limited by {after.limit_label}",
        evidence=[
            f"{how} By limit: {limits}." if limits else how,
            f"On current free capacity: {free}, limited by {preview.free_after.limit_label}.",
        ],
    )


def _before_after(before: Packing, after: Packing) -> str:
    """Return text such as `12 → 16` or `at most 16`."""
    shown = f"{after.sessions:,}"
    if before.sessions != after.sessions:
        shown = f"{before.sessions:,} → {shown}"
    return f"at most {shown}" if after.is_bound else shown


def each_worker(packing: Packing) -> str:
    share = packing.sessions / packing.workers
    return f"{share:.0f}" if share == int(share) else f"{share:.1f}"


def _limit(name: str, before: Packing, after: Packing) -> str:
    old, new = before.by_limit.get(name, 0), after.by_limit[name]
    return f"{resource_word(name)} {new:,}" if old == new else f"{resource_word(name)} {old:,} → {new:,}"


def _saved(preview: RequirementPreview) -> ReviewAnswer:
    """Return what the last thirty days would have saved or cost."""
    question, saving = "Effect over the last 30 days", preview.saving
    if not preview.evidence.assessment.held_seconds:
        return ReviewAnswer(question, "unknown", "no counted session in that time")
    parts = [
        f"{_hours(units)} {what} {'less' if units > 0 else 'more'}"
        for units, what in ((saving.cpu, "core-hours"), (saving.memory, "GB-hours of memory"))
        if units
    ]
    if not parts:
        return ReviewAnswer(question, "the same")
    return ReviewAnswer(question, parts[0], f"and {parts[1]}" if len(parts) > 1 else "")


def _hours(units: int) -> str:
    """Return whole hours, with decimals below ten."""
    return text(abs(units)) if abs(units) < 1000 else f"{abs(units) // 100:,}"


def _risk(preview: RequirementPreview) -> ReviewAnswer:
    level = highest_risk([impact.risk for impact in preview.impacts])
    tone = TONES[level]
    texts = [risk_text(impact.risk) for impact in preview.impacts]
    return ReviewAnswer("Risk", level.capitalize(), tone=tone, evidence=texts)


def _trust(preview: RequirementPreview) -> ReviewAnswer:
    """Return the lowest confidence of the changed resources, or of all if none changes."""
    impacts = [impact for impact in preview.impacts if impact.changes] or preview.impacts
    weakest = min(impacts, key=lambda impact: LEVELS.index(impact.view.confidence.level))
    confidence = weakest.view.confidence
    first, *rest = confidence.reasons
    texts = [f"{RULES[weakest.resource].label}: {', '.join(rest)}."] if rest else []
    return ReviewAnswer(
        "Confidence", confidence.level.capitalize(), first, TRUST_TONES[confidence.level], texts
    )
