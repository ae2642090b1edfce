"""Summary of a definition's evidence in one or two sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lcm.models import RevisionOutcome
from lcm.web.wording import count_text
from observations.arithmetic.measures import CPU, MEASURED, MEMORY, USED, text, with_unit
from observations.pages.review_texts import each_worker, resource_word
from observations.services.requirement_preview import RequirementPreview, ResourceImpact


def review_summary(preview: RequirementPreview) -> str:
    """Return the summary in one or two sentences; `**…**` marks strong text."""
    kept, n = preview.evidence.assessment, preview.evidence.digest.n
    if not n:
        return (
            "**No completed session has been observed yet.** A recommendation needs five observed sessions."
        )
    sessions = count_text(n, "session")
    flagged = [name for name in MEASURED if name in kept.flags]
    if not flagged and kept.provisioning == "not_enough_data":
        few = f"**Not enough data: {sessions} observed.**"
        return f"{few} A recommendation needs five sessions, a reduction ten."
    if not flagged:
        return _fits(preview, sessions)
    sentence = " and ".join(
        filter(None, (_set(kept.flags, "under", "too low"), _set(kept.flags, "over", "too high")))
    )
    return f"**{sentence[0].upper()}{sentence[1:]}.**{_seen(preview, flagged, sessions)}{_would_fit(preview)}"


def _set(flags: Mapping[str, str], direction: str, how: str) -> str:
    """Return text such as `CPU and memory are set too high`."""
    names = [resource_word(name) for name in MEASURED if flags.get(name) == direction]
    return f"{_listed(names)} {'are' if len(names) > 1 else 'is'} set {how}" if names else ""


def _listed(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _fits(preview: RequirementPreview, sessions: str) -> str:
    """State that the requirements fit, and how many sessions had the current revision if not all had."""
    revision, evidence = preview.definition.current_revision, preview.evidence
    assert revision is not None
    if revision.outcome == RevisionOutcome.REGRESSED:
        exceeded = f"**Revision {revision.number} was exceeded by the sessions after it.**"
        return f"{exceeded} Over all {sessions} the requirements are right-sized."
    of_them = ""
    if evidence.current_revision_n < evidence.digest.n:
        number = f"{evidence.current_revision_n:,}" if evidence.current_revision_n else "none"
        of_them = f", {number} with revision {revision.number}{'' if evidence.current_revision_n else ' yet'}"
    return f"**Right-sized** according to {sessions}{of_them}."


def _seen(preview: RequirementPreview, flagged: Sequence[str], sessions: str) -> str:
    """Return text such as ` 8 sessions used at most 15.93 of 14 cores and 70.88 of 62 GB memory.`"""
    impacts = [each for each in preview.impacts if each.resource in flagged]
    told: dict[str, list[str]] = {}
    for impact in impacts:
        verb = "used" if impact.view.source == USED else "held"
        told.setdefault(verb, []).extend(_at_most(impact))
    parts = [f"{verb} at most {_listed(amounts)}" for verb, amounts in told.items() if amounts]
    return f" {sessions} {' and '.join(parts)}." if parts else ""


def _at_most(impact: ResourceImpact) -> list[str]:
    """Return used and required amounts; GB are named, because memory and storage both use them."""
    name = impact.resource
    if impact.view.summary is None:
        return []
    kind = "" if name == CPU else f" {resource_word(name)}"
    return [f"{text(impact.view.summary.max)} of {with_unit(name, impact.required)}{kind}"]


def _would_fit(preview: RequirementPreview) -> str:
    before, after = preview.empty_before, preview.empty_after
    if not before.workers or before.sessions >= after.sessions:
        return ""
    proposed = " and ".join(
        with_unit(impact.resource, impact.proposal.value)
        for impact in preview.impacts
        if impact.changes and impact.resource in (CPU, MEMORY)
    )
    if not proposed:
        return ""
    if after.is_bound:
        return (
            f" At {proposed} at most {after.sessions:,} would fit the workers instead of {before.sessions:,}."
        )
    fewer, more = each_worker(before), each_worker(after)
    return f" At {proposed} a worker would run {more} of these labs instead of {fewer}."
