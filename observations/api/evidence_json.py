"""Evidence and previews as JSON: amounts are strings with two decimals, unknown values are null."""

from __future__ import annotations

from typing import Any

from observations.arithmetic.assessment import DAYS, ResourceView, lowest_confidence
from observations.arithmetic.impact import Packing, highest_risk, risk_text
from observations.arithmetic.measures import CPU, MEMORY, amount
from observations.arithmetic.recommendation import propose
from observations.models import DefinitionAssessment
from observations.selectors.evidence import Evidence, MemoryDrivers, NodeFigures, Outlier
from observations.selectors.nodes import NodeAggregate
from observations.services.requirement_preview import RequirementPreview, ResourceImpact

AMOUNTS = ("min", "p50", "p90", "p95", "decayed_p95", "max", "avg", "latest")


def units(value: int | None) -> str | None:
    return None if value is None else f"{amount(value):.2f}"


def view_json(view: ResourceView) -> dict[str, Any]:
    summary = view.summary
    figures: dict[str, Any] = dict.fromkeys((*AMOUNTS, "spread"))
    recommended = None
    if summary is not None:
        figures = {name: units(getattr(summary, name)) for name in AMOUNTS} | {"spread": summary.spread}
        proposal = propose(view.resource, "recommended", summary, view.source)
        recommended = {"value": units(proposal.value), "derivation": str(proposal.derivation)}
    return {
        "source": view.source,
        "sessions_by_source": dict(view.sessions_by_source),
        "n": summary.n if summary else 0,
        **figures,
        "step_change": view.step,
        "confidence": view.confidence.level,
        "confidence_reasons": [str(reason) for reason in view.confidence.reasons],
        "recommended": recommended,
    }


def evidence_json(evidence: Evidence) -> dict[str, Any]:
    """Return the aggregate of a definition."""
    kept = evidence.assessment
    return {
        "definition": str(evidence.definition.pk),
        "epoch": evidence.epoch,
        "revision": evidence.revision.number if evidence.revision else None,
        "n": evidence.digest.n,
        "newest": evidence.newest,
        "class": kept.provisioning,
        "confidence": lowest_confidence(evidence.views.values()),
        "flags": kept.flags,
        "reasons": kept.reasons,
        "waste": waste_json(kept),
        "snoozed_until": kept.snoozed_until,
        "dismissed": kept.dismissed is not None,
        "resources": {name: view_json(view) for name, view in evidence.views.items()},
    }


def waste_json(kept: DefinitionAssessment) -> dict[str, Any]:
    """Return the waste of a definition; with allocated figures it is a lower bound."""
    hours = {"core_hours": CPU, "gb_hours": MEMORY}
    known = {name: kept.wasted(resource) for name, resource in hours.items()}
    return {
        **{name: None if value is None else str(value) for name, value in known.items()},
        "source": {name: kept.sources.get(resource) for name, resource in hours.items()},
        "days": DAYS,
    }


def impact_json(impact: ResourceImpact) -> dict[str, Any]:
    return {
        "basis": impact.proposal.basis,
        "source": impact.view.source,
        "before": units(impact.required),
        "after": units(impact.proposal.value),
        "percent": impact.percent,
        "derivation": str(impact.proposal.derivation),
        "exceeding": impact.risk.exceeding,
        "sample_count": impact.risk.n,
        "exceeding_last_30_days": impact.exceeding_recent,
        "largest_excess": units(impact.worst_excess),
        "upper_bound": round(impact.risk.upper_bound, 4),
        "risk": impact.risk.level,
        "risk_text": str(risk_text(impact.risk)),
        "confidence": impact.view.confidence.level,
        "confidence_reasons": [str(reason) for reason in impact.view.confidence.reasons],
        "sessions": [
            {
                "session": str(each.session_id),
                "owner": each.owner,
                "observed_at": each.observed_at,
                "value": units(each.value),
                "excess": units(each.excess),
            }
            for each in impact.exceeding
        ],
    }


def packing_json(before: Packing, after: Packing) -> dict[str, Any]:
    return {
        "workers": before.workers,
        "at_most": after.is_bound,
        "before": before.sessions,
        "after": after.sessions,
        "limited_by_before": before.limit_label,
        "limited_by_after": after.limit_label,
        "by_limit_before": dict(before.by_limit),
        "by_limit_after": dict(after.by_limit),
    }


def preview_json(preview: RequirementPreview) -> dict[str, Any]:
    """Return the preview that an administrator sees before applying."""
    return {
        "definition": str(preview.definition.pk),
        "based_on": preview.definition.revision.number,
        "changes": preview.changes,
        "resources": {impact.resource: impact_json(impact) for impact in preview.impacts},
        "empty_workers": packing_json(preview.empty_before, preview.empty_after),
        "free_now": packing_json(preview.free_before, preview.free_after),
        "saved_last_30_days": {
            "core_hours": units(preview.saving.cpu),
            "gb_hours": units(preview.saving.memory),
        },
        "risk": highest_risk([impact.risk for impact in preview.impacts]),
        "token": preview.token,
    }


def outlier_json(outlier: Outlier) -> dict[str, Any]:
    return {
        "session": str(outlier.session_id),
        "resource": outlier.resource,
        "value": units(outlier.value),
    }


def drivers_json(drivers: MemoryDrivers | None) -> dict[str, Any] | None:
    """Return the nodes with the most memory; null if no node's memory is known."""
    if drivers is None or not drivers.nodes_total:
        return None
    nodes = [
        {
            "label": node.label,
            "node_definition": node.node_definition,
            "cpu_cores": units(node.cpu),
            "memory_gb": units(node.memory),
            "percent": node.percent,
        }
        for node in drivers.nodes
    ]
    return {
        "session": str(drivers.session_id),
        "memory_gb": units(drivers.value),
        "nodes_total_gb": units(drivers.nodes_total),
        "from_other_observation": drivers.from_other_observation,
        "nodes": nodes,
    }


def node_json(node: NodeAggregate) -> dict[str, Any]:
    def shown(figures: NodeFigures) -> dict[str, Any]:
        return {
            "cpu_cores": units(figures.cpu),
            "memory_gb": units(figures.memory),
            "storage_gb": units(figures.storage),
        }

    return {
        "label": node.label,
        "node_definition": node.kind,
        "sessions": node.sessions,
        "max": shown(node.largest),
        "latest": shown(node.latest),
    }
