"""Preview of a requirement change, and the token that binds applying to the preview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core import signing
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from lcm.domain import messages
from lcm.domain.errors import InvalidInput, StalePreview
from lcm.models import LabletDefinition
from lcm.models.resources import RESOURCE_LABELS, RESOURCE_UNITS
from lcm.services.validation import refuse_unknown
from observations.arithmetic.assessment import ResourceView
from observations.arithmetic.impact import Packing, Risk, Saving, risk_of, saved
from observations.arithmetic.measures import MEASURED, SOURCES, amount, hundredths
from observations.arithmetic.recommendation import BASES, Proposal, propose
from observations.models.resource_labels import resource_amount
from observations.selectors.evidence import (
    Evidence,
    ExceedingList,
    ExceedingSession,
    evidence_of,
    exceeding_sessions,
)
from observations.selectors.fleet_capacity import packing_of
from observations.services.assessments import required_by
from scheduling.selectors.pools import pools_of
from scheduling.services.pool_choice import requirement_warning

KEEP, CUSTOM = "keep", "custom"
SALT = "observations.preview"
MAX_CUSTOM = 999_999
NONE_EXCEEDING = ExceedingList([], 0)


@dataclass(frozen=True)
class RequirementChoice:
    """A user's choice for one resource: a basis, and for `custom` the number itself."""

    basis: str = KEEP
    custom: Decimal | None = None
    source: str = ""


@dataclass(frozen=True)
class ResourceImpact:
    """One resource of a preview."""

    view: ResourceView
    required: int
    proposal: Proposal
    risk: Risk
    exceeding: list[ExceedingSession]
    exceeding_recent: int
    worst_excess: int

    @property
    def resource(self) -> str:
        return self.view.resource

    @property
    def changes(self) -> bool:
        return self.proposal.value != self.required

    @property
    def percent(self) -> int:
        return round((self.proposal.value - self.required) * 100 / self.required) if self.required else 0


@dataclass(frozen=True)
class RequirementPreview:
    """All figures that an administrator sees before applying."""

    definition: LabletDefinition
    evidence: Evidence
    impacts: list[ResourceImpact]
    empty_before: Packing
    empty_after: Packing
    free_before: Packing
    free_after: Packing
    saving: Saving
    token: str
    # Which proposed requirements no slot could hold.
    warning: str = ""

    @property
    def values(self) -> dict[str, int]:
        return {impact.resource: impact.proposal.value for impact in self.impacts}

    @property
    def changes(self) -> bool:
        return any(impact.changes for impact in self.impacts)


def preview_change(
    *,
    definition: LabletDefinition,
    choices: Mapping[str, RequirementChoice],
    now: datetime,
    evidence: Evidence | None = None,
) -> RequirementPreview:
    """Return the effect of the choices on past sessions and on the fleet."""
    refuse_unknown(choices, MEASURED, _("Unknown resource."))
    evidence = evidence or evidence_of(
        definition, now=now, sources={name: each.source for name, each in choices.items() if each.source}
    )
    before = required_by(definition.revision)
    proposals = _proposals(evidence, choices, before)
    impacts = _impacts(evidence, before, proposals, now)
    after = {impact.resource: impact.proposal.value for impact in impacts}
    pools = pools_of(definition)
    packings = packing_of(definition, pools, before=before, after=after)
    proposed = {name: amount(units) for name, units in after.items()}
    return RequirementPreview(
        definition,
        evidence,
        impacts,
        *packings,
        saving=saved(before, after, evidence.assessment.held_seconds),
        token=_token(definition, impacts),
        warning=requirement_warning(definition, proposed, pools) if after != before else "",
    )


def check_token(*, token: str, preview: RequirementPreview) -> None:
    """Raise an error that lists what has changed since the preview, if anything."""
    try:
        seen = signing.loads(token, salt=SALT)
    except signing.BadSignature as error:
        raise StalePreview(_("Preview this change first; LCM applies only a previewed change.")) from error
    fresh = signing.loads(preview.token, salt=SALT)
    if seen == fresh:
        return
    changed = _differences(seen, fresh, preview)
    raise StalePreview(changed[0], details={"changed": changed, "token": preview.token})


def _differences(seen: dict[str, Any], fresh: dict[str, Any], preview: RequirementPreview) -> list[str]:
    if seen["definition"] != fresh["definition"]:
        return [_("This preview belongs to another definition.")]
    revision = preview.definition.revision
    changed = []
    if seen["revision"] != fresh["revision"]:
        text = _("%(actor)s applied revision %(number)s after the preview; review it first.")
        changed.append(text % {"actor": revision.actor, "number": revision.number})
    if seen["choices"] != fresh["choices"]:
        changed.append(_("The values differ from the preview; preview it again before applying."))
    for name, old in seen["numbers"].items():
        new = fresh["numbers"][name]
        if old != new and seen["choices"].get(name) == fresh["choices"].get(name):
            changed += _changed_numbers(name, old, new)
    return changed or [_("The evidence has changed since the preview; preview it again.")]


def _changed_numbers(name: str, before: list[int], after: list[int]) -> list[str]:
    """Return a sentence for each of `_numbers` that has changed."""
    texts = (
        _("%(resource)s: the proposal was %(old)s and is now %(new)s."),
        _("%(resource)s: the maximum was %(old)s and is now %(new)s."),
        _("%(resource)s: the recommendation was %(old)s and is now %(new)s."),
    )
    label = RESOURCE_LABELS[name]
    changes = [
        text % {"resource": label, "old": resource_amount(name, old), "new": resource_amount(name, new)}
        for text, old, new in zip(texts, before, after, strict=False)
        if old != new
    ]
    if before[3] != after[3]:
        text = ngettext(
            "%(resource)s: %(new)s session now exceeds the proposal, previously %(old)s.",
            "%(resource)s: %(new)s sessions now exceed the proposal, previously %(old)s.",
            after[3],
        )
        changes.append(text % {"resource": label, "old": before[3], "new": after[3]})
    return changes


def _impacts(
    evidence: Evidence, before: Mapping[str, int], proposals: Sequence[Proposal], now: datetime
) -> list[ResourceImpact]:
    views = evidence.views
    above = {each.resource: evidence.above(views[each.resource], each.value) for each in proposals}
    limits = {each.resource: each.value for each in proposals if above[each.resource]}
    listed = exceeding_sessions(evidence, limits, now=now)
    impacts = []
    for proposal in proposals:
        view, exceeding = views[proposal.resource], listed.get(proposal.resource, NONE_EXCEEDING)
        n, largest = (view.summary.n, view.summary.max) if view.summary else (0, 0)
        risk = risk_of(view.resource, above[view.resource], n)
        excess = max(largest - proposal.value, 0)
        required, listing = before[view.resource], (exceeding.sessions, exceeding.recent)
        impacts.append(ResourceImpact(view, required, proposal, risk, *listing, excess))
    return impacts


def _proposals(
    evidence: Evidence, choices: Mapping[str, RequirementChoice], before: Mapping[str, int]
) -> list[Proposal]:
    """Return the proposal for each resource; raise InvalidInput with all problems."""
    proposals: list[Proposal] = []
    problems: dict[str, list[str]] = {}
    for name in MEASURED:
        try:
            choice = choices.get(name, RequirementChoice())
            proposals.append(_proposal(evidence.views[name], choice, before[name]))
        except InvalidInput as error:
            problems |= error.fields
    if problems:
        raise InvalidInput(problems)
    return proposals


def _proposal(view: ResourceView, choice: RequirementChoice, required: int) -> Proposal:
    name, label = view.resource, RESOURCE_LABELS[view.resource]
    if choice.source and choice.source not in SOURCES:
        text = _("%(resource)s: “%(source)s” is not a source; use one of %(allowed)s.")
        shown = {"resource": label, "source": choice.source, "allowed": ", ".join(SOURCES)}
        raise InvalidInput({name: text % shown})
    if choice.basis == KEEP:
        return Proposal(name, KEEP, required, messages.gettext("unchanged"))
    if choice.basis == CUSTOM:
        return Proposal(name, CUSTOM, _custom(name, choice.custom), messages.gettext("a custom number"))
    if choice.basis not in BASES:
        text = _("%(resource)s: “%(basis)s” is not a basis; use one of %(allowed)s.")
        shown = {"resource": label, "basis": choice.basis, "allowed": ", ".join((KEEP, *BASES, CUSTOM))}
        raise InvalidInput({name: text % shown})
    if view.summary is None or (choice.basis == "latest" and view.summary.latest is None):
        text = _("%(resource)s: no session has figures for %(basis)s. Keep the value or enter a number.")
        raise InvalidInput({name: text % {"resource": label, "basis": choice.basis}})
    return propose(name, choice.basis, view.summary, view.source)


def _custom(name: str, value: Decimal | None) -> int:
    if value is None:
        text = _("Enter a custom number for %(resource)s.")
        raise InvalidInput({name: text % {"resource": RESOURCE_LABELS[name]}})
    try:
        units = hundredths(value) if value.is_finite() else -1
    except InvalidOperation:
        units = -1
    if not 0 < units <= MAX_CUSTOM * 100 or amount(units) != value:
        text = _(
            "%(resource)s must be between 0.01 and %(most)s %(unit)s, with at most two decimals; "
            "you entered %(value)s."
        ) % {
            "resource": RESOURCE_LABELS[name],
            "most": f"{MAX_CUSTOM:,}",
            "unit": RESOURCE_UNITS[name],
            "value": value,
        }
        raise InvalidInput({name: text})
    return units


def _token(definition: LabletDefinition, impacts: list[ResourceImpact]) -> str:
    """Return a hash of the facts behind the decision: revision, choices and their figures."""
    seen = {
        "definition": str(definition.pk),
        "revision": definition.revision.number,
        "choices": {impact.resource: [impact.proposal.basis, impact.view.source] for impact in impacts},
        "numbers": {impact.resource: _numbers(impact) for impact in impacts},
    }
    return signing.dumps(seen, salt=SALT, compress=True)


def _numbers(impact: ResourceImpact) -> list[int]:
    summary = impact.view.summary
    if summary is None:
        return [impact.proposal.value, 0, 0, 0]
    recommended = propose(impact.resource, "recommended", summary, impact.view.source).value
    return [impact.proposal.value, summary.max, recommended, impact.risk.exceeding]
