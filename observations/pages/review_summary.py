"""Summary of a definition's evidence in one or two sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from lcm.models import RevisionOutcome
from lcm.web.wording import list_text
from observations.arithmetic.measures import CPU, MEASURED, MEMORY, USED, text
from observations.arithmetic.recommendation import OVER, UNDER, Provisioning
from observations.models.resource_labels import resource_amount
from observations.pages.review_texts import each_worker, resource_word
from observations.services.requirement_preview import RequirementPreview, ResourceImpact


def review_summary(preview: RequirementPreview) -> str:
    """Return the summary in one or two sentences; `**…**` marks strong text."""
    kept, n = preview.evidence.assessment, preview.evidence.digest.n
    if not n:
        return _(
            "**No completed session has been observed yet.** A recommendation needs five observed sessions."
        )
    sessions = ngettext("%(count)s session", "%(count)s sessions", n) % {"count": f"{n:,}"}
    flagged = [name for name in MEASURED if name in kept.flags]
    if not flagged and kept.provisioning == Provisioning.NOT_ENOUGH_DATA:
        text = _(
            "**Not enough data: %(sessions)s observed.** "
            "A recommendation needs five sessions, a reduction ten."
        )
        return text % {"sessions": sessions}
    if not flagged:
        return _fits(preview, sessions)
    parts = (f"**{' '.join(_wrong(kept.flags))}**", _seen(preview, flagged, sessions), _would_fit(preview))
    return " ".join(filter(None, parts))


def _wrong(flags: Mapping[str, str]) -> Iterator[str]:
    """Yield sentences such as `CPU and memory are set too low.`"""
    low, high = (
        [resource_word(name) for name in MEASURED if flags.get(name) == direction]
        for direction in (UNDER, OVER)
    )
    if low:
        text = ngettext("%(resources)s is set too low.", "%(resources)s are set too low.", len(low))
        yield text % {"resources": capfirst(list_text(low))}
    if high:
        text = ngettext("%(resources)s is set too high.", "%(resources)s are set too high.", len(high))
        yield text % {"resources": capfirst(list_text(high))}


def _fits(preview: RequirementPreview, sessions: str) -> str:
    """State that the requirements fit, and how many sessions had the current revision if not all had."""
    revision, evidence = preview.definition.revision, preview.evidence
    if revision.outcome == RevisionOutcome.REGRESSED:
        text = _(
            "**Revision %(number)s was exceeded by the sessions after it.** "
            "Over all %(sessions)s the requirements are right-sized."
        )
        return text % {"number": revision.number, "sessions": sessions}
    current = evidence.current_revision_n
    if current == evidence.digest.n:
        return _("**Right-sized** according to %(sessions)s.") % {"sessions": sessions}
    if not current:
        text = _("**Right-sized** according to %(sessions)s, none with revision %(number)s yet.")
    else:
        text = _("**Right-sized** according to %(sessions)s, %(current)s with revision %(number)s.")
    return text % {"sessions": sessions, "current": f"{current:,}", "number": revision.number}


def _seen(preview: RequirementPreview, flagged: Sequence[str], sessions: str) -> str:
    """Return text such as `8 sessions used at most 15.93 of 14 cores and 70.88 of 62 GB memory.`"""
    impacts = [each for each in preview.impacts if each.resource in flagged]
    used = [text for each in impacts if each.view.source == USED for text in _at_most(each)]
    held = [text for each in impacts if each.view.source != USED for text in _at_most(each)]
    if not used and not held:
        return ""
    values = {"sessions": sessions, "used": used and list_text(used), "held": held and list_text(held)}
    if used and held:
        return _("%(sessions)s used at most %(used)s and held at most %(held)s.") % values
    if used:
        return _("%(sessions)s used at most %(used)s.") % values
    return _("%(sessions)s held at most %(held)s.") % values


def _at_most(impact: ResourceImpact) -> list[str]:
    """Return used and required amounts; GB are named, because memory and storage both use them."""
    name = impact.resource
    if impact.view.summary is None:
        return []
    amounts = {
        "amount": text(impact.view.summary.max),
        "required": resource_amount(name, impact.required),
        "resource": resource_word(name),
    }
    if name == CPU:
        return [_("%(amount)s of %(required)s") % amounts]
    return [_("%(amount)s of %(required)s %(resource)s") % amounts]


def _would_fit(preview: RequirementPreview) -> str:
    before, after = preview.empty_before, preview.empty_after
    if not before.workers or before.sessions >= after.sessions:
        return ""
    proposed = [
        resource_amount(impact.resource, impact.proposal.value)
        for impact in preview.impacts
        if impact.changes and impact.resource in (CPU, MEMORY)
    ]
    if not proposed:
        return ""
    if after.is_bound:
        text = _("At %(proposed)s at most %(more)s would fit the workers instead of %(fewer)s.")
        fewer, more = f"{before.sessions:,}", f"{after.sessions:,}"
    else:
        text = _("At %(proposed)s a worker would run %(more)s of these labs instead of %(fewer)s.")
        fewer, more = each_worker(before), each_worker(after)
    return text % {"proposed": list_text(proposed), "more": more, "fewer": fewer}
