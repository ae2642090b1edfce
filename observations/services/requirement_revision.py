"""Applying a previewed change as a revision with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput
from lcm.models import DefinitionRevision, LabletDefinition, RevisionBasis
from lcm.services.definitions import revise_definition
from lcm.services.validation import require_reason
from observations.arithmetic.assessment import ResourceView
from observations.arithmetic.measures import amount
from observations.selectors.evidence import Evidence, evidence_of
from observations.services.assessments import lock_assessment
from observations.services.requirement_preview import (
    CUSTOM,
    KEEP,
    RequirementChoice,
    RequirementPreview,
    ResourceImpact,
    check_token,
    preview_change,
)


def apply_requirements(
    *,
    definition: LabletDefinition,
    choices: Mapping[str, RequirementChoice],
    token: str,
    reason: str,
    actor: Actor,
    now: datetime,
) -> DefinitionRevision:
    """Apply the previewed requirements to new sessions. Running sessions keep theirs."""
    require_reason(reason)
    with transaction.atomic():
        assessment = lock_assessment(definition)
        fresh = LabletDefinition.objects.select_related("current_revision").get(pk=definition.pk)
        preview = preview_change(definition=fresh, choices=choices, now=now)
        check_token(token=token, preview=preview)
        if not preview.changes:
            text = _("This change has no effect; choose a different value for at least one resource.")
            raise InvalidInput({"choices": text})
        revision = revise_definition(
            definition=fresh,
            requirements={name: amount(units) for name, units in preview.values.items()},
            based_on=fresh.revision.number,
            reason=reason,
            basis=_basis(preview),
            bases=_bases(preview),
            aggregate=_evidence(preview, evidence_of(fresh, now=now)),
            actor=actor,
            now=now,
        )
        assessment.snoozed_until = assessment.dismissed = None
        assessment.save(update_fields=["snoozed_until", "dismissed"])
    definition.current_revision = revision
    return revision


def _basis(preview: RequirementPreview) -> RevisionBasis:
    """Return the basis chosen for all resources, or mixed."""
    bases = {impact.proposal.basis for impact in preview.impacts} - {KEEP}
    return RevisionBasis(bases.pop()) if len(bases) == 1 else RevisionBasis.MIXED


def _bases(preview: RequirementPreview) -> dict[str, dict[str, str | None]]:
    """Return basis and source of each resource; kept and custom numbers have no source."""
    return {
        impact.resource: {
            "basis": impact.proposal.basis,
            "source": None if impact.proposal.basis in (KEEP, CUSTOM) else impact.view.source,
        }
        for impact in preview.impacts
    }


def _evidence(preview: RequirementPreview, usual: Evidence) -> dict[str, Any]:
    """Return the evidence of the revision at this time; kept resources use the default source."""
    return {
        "epoch": preview.evidence.epoch,
        "n": preview.evidence.digest.n,
        "resources": {
            impact.resource: _resource(
                impact, usual.views[impact.resource] if impact.proposal.basis == KEEP else impact.view, usual
            )
            for impact in preview.impacts
        },
    }


def _resource(impact: ResourceImpact, view: ResourceView, evidence: Evidence) -> dict[str, Any]:
    value = impact.proposal.value
    return {
        "basis": impact.proposal.basis,
        "source": view.source,
        "derivation": str(impact.proposal.derivation),
        "value": str(amount(value)),
        "confidence": view.confidence.level,
        "exceeding": evidence.above(view, value),
        "summary": asdict(view.summary) if view.summary else None,
    }
