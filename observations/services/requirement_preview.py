"""Preview of a requirement change, and the token that binds applying to the preview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core import signing
from django.utils.translation import gettext as _

from lcm.domain.errors import InvalidInput, StalePreview
from lcm.models import LabletDefinition
from observations.arithmetic.assessment import ResourceView
from observations.arithmetic.impact import Packing, Risk, Saving, risk_of, saved
from observations.arithmetic.measures import MEASURED, SOURCES, amount, hundredths
from observations.arithmetic.recommendation import BASES, Proposal, propose
from observations.models.resource_labels import RESOURCE_LABELS, RESOURCE_UNITS, resource_amount
from observations.selectors.evidence import (
    Evidence,
    ExceedingList,
    ExceedingSession,
    evidence_of,
    exceeding_sessions,
)
from observations.selectors.fleet_capacity import packing_of
from observations.services.assessments import required_by

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
    exceeding: list[ExceedingSession] = field(default_factory=list)
    exceeding_recent: int = 0
    worst_excess: int = 0

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
    unknown = set(choices) - set(MEASURED)
    if unknown:
        raise InvalidInput(dict.fromkeys(sorted(unknown), _("Unknown resource.")))
    evidence = evidence or evidence_of(
        definition, now=now, sources={name: each.source for name, each in choices.items() if each.source}
    )
    revision = definition.current_revision
    assert revision is not None
    before = required_by(revision)
    proposals = [
        _proposal(evidence.views[name], choices.get(name, RequirementChoice()), before[name])
        for name in MEASURED
    ]
    impacts = _impacts(evidence, before, proposals, now)
    after = {impact.resource: impact.proposal.value for impact in impacts}
    packings = packing_of(definition, before=before, after=after)
    return RequirementPreview(
        definition,
        evidence,
        impacts,
        *packings,
        saving=saved(before, after, evidence.assessment.held_seconds),
        token=_token(definition, impacts),
    )


def check_token(*, token: str, preview: RequirementPreview) -> None:
    """Raise an error that lists what has changed since the preview, if anything."""
    try:
        seen = signing.loads(token, salt=SALT)
    except signing.BadSignature as error:
        raise StalePreview(_("Preview this change first; LCM applies only a previewed change.")) from error
    now_shown = signing.loads(preview.token, salt=SALT)
    if seen == now_shown:
        return
    changed = _differences(seen, now_shown, preview)
    raise StalePreview(changed[0], details={"changed": changed, "token": preview.token})


def _differences(seen: dict[str, Any], fresh: dict[str, Any], preview: RequirementPreview) -> list[str]:
    if seen["definition"] != fresh["definition"]:
        return [_("This preview belongs to another definition.")]
    revision = preview.definition.current_revision
    assert revision is not None
    changed = []
    if seen["revision"] != fresh["revision"]:
        text = _("%(actor)s applied revision %(number)s after the preview; review it first.")
        changed.append(text % {"actor": revision.actor, "number": revision.number})
    if seen["choices"] != fresh["choices"]:
        changed.append(_("The values differ from the preview; preview it again before applying."))
    for name, was in seen["numbers"].items():
        now_is = fresh["numbers"][name]
        if was != now_is and seen["choices"].get(name) == fresh["choices"].get(name):
            changed += _said(name, was, now_is)
    return changed or [_("The evidence has changed since the preview; preview it again.")]


def _said(name: str, was: list[int], now_is: list[int]) -> list[str]:
    texts = (
        _("%(resource)s: the proposal was %(old)s and is now %(new)s."),
        _("%(resource)s: the maximum was %(old)s and is now %(new)s."),
        _("%(resource)s: the recommendation was %(old)s and is now %(new)s."),
    )
    label = RESOURCE_LABELS[name]
    said = [
        text % {"resource": label, "old": resource_amount(name, old), "new": resource_amount(name, new)}
        for text, old, new in zip(texts, was, now_is, strict=False)
        if old != new
    ]
    if was[3] != now_is[3]:
        text = _("%(resource)s: %(new)s sessions now exceed the proposal, previously %(old)s.")
        said.append(text % {"resource": label, "old": was[3], "new": now_is[3]})
    return said


def _impacts(
    evidence: Evidence, before: Mapping[str, int], proposals: Sequence[Proposal], now: datetime
) -> list[ResourceImpact]:
    above = {each.resource: _above(evidence, each) for each in proposals}
    limits = {each.resource: each.value for each in proposals if above[each.resource]}
    listed = exceeding_sessions(evidence, limits, now=now)
    return [
        _impact(evidence.views[name], before[name], proposal, above[name], listed.get(name, NONE_EXCEEDING))
        for name, proposal in ((each.resource, each) for each in proposals)
    ]


def _above(evidence: Evidence, proposal: Proposal) -> int:
    """Return the number of past sessions that would exceed the proposal."""
    view = evidence.views[proposal.resource]
    return evidence.digest.of(view.resource, view.source).above(proposal.value)


def _impact(
    view: ResourceView, required: int, proposal: Proposal, above: int, listed: ExceedingList
) -> ResourceImpact:
    return ResourceImpact(
        view=view,
        required=required,
        proposal=proposal,
        risk=risk_of(view.resource, above, view.summary.n if view.summary else 0),
        exceeding=listed.sessions,
        exceeding_recent=listed.recent,
        worst_excess=max((view.summary.max if view.summary else 0) - proposal.value, 0),
    )


def _proposal(view: ResourceView, choice: RequirementChoice, required: int) -> Proposal:
    name, label = view.resource, RESOURCE_LABELS[view.resource]
    if choice.source and choice.source not in SOURCES:
        text = _("%(resource)s: “%(source)s” is not a source; use one of %(allowed)s.")
        shown = {"resource": label, "source": choice.source, "allowed": ", ".join(SOURCES)}
        raise InvalidInput({name: text % shown})
    if choice.basis == KEEP:
        return Proposal(name, KEEP, required, "as it is")
    if choice.basis == CUSTOM:
        return Proposal(name, CUSTOM, _custom(name, choice.custom), "a custom number")
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
    revision = definition.current_revision
    assert revision is not None
    seen = {
        "definition": str(definition.pk),
        "revision": revision.number,
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
