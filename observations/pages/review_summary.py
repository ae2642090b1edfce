"""Summary of a definition's evidence in one or two sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from django.utils.text import capfirst

from lcm.models import RevisionOutcome
from lcm.web.wording import count_text
from observations.arithmetic.measures import CPU, MEASURED, MEMORY, USED, text, with_unit
from observations.arithmetic.recommendation import OVER, UNDER, Provisioning
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
    if not flagged and kept.provisioning == Provisioning.NOT_ENOUGH_DATA:
        few = f"**Not enough data: {sessions} observed.**"
        return f"{few} A recommendation needs five sessions, a reduction ten."
    if not flagged:
        return _fits(preview, sessions)
    sentences = " ".join([*_too_low(kept.flags), *_too_high(kept.flags)])
    return f"**{sentences}**{_seen(preview, flagged, sessions)}{_would_fit(preview)}"


def _too_low(flags: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence such as `CPU and memory are set too low.`"""
    names = _flagged(flags, UNDER)
    if len(names) == 1:
        yield f"{capfirst(names[0])} is set too low."
    elif names:
        yield f"{capfirst(_listed(names))} are set too low."


def _too_high(flags: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence such as `Storage is set too high.`"""
    names = _flagged(flags, OVER)
    if len(names) == 1:
        yield f"{capfirst(names[0])} is set too high."
    elif names:
        yield f"{capfirst(_listed(names))} are set too high."


def _flagged(flags: Mapping[str, str], direction: str) -> list[str]:
    return [resource_word(name) for name in MEASURED if flags.get(name) == direction]


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
    current = evidence.current_revision_n
    if current == evidence.digest.n:
        return f"**Right-sized** according to {sessions}."
    if not current:
        return f"**Right-sized** according to {sessions}, none with revision {revision.number} yet."
    return f"**Right-sized** according to {sessions}, {current:,} with revision {revision.number}."


def _seen(preview: RequirementPreview, flagged: Sequence[str], sessions: str) -> str:
    """Return text such as ` 8 sessions used at most 15.93 of 14 cores and 70.88 of 62 GB memory.`"""
    impacts = [each for each in preview.impacts if each.resource in flagged]
    used = [text for each in impacts if each.view.source == USED for text in _at_most(each)]
    held = [text for each in impacts if each.view.source != USED for text in _at_most(each)]
    if used and held:
        return f" {sessions} used at most {_listed(used)} and held at most {_listed(held)}."
    if used:
        return f" {sessions} used at most {_listed(used)}."
    return f" {sessions} held at most {_listed(held)}." if held else ""


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
