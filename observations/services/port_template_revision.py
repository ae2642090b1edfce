"""Revision of a port template after a port review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lcm.domain.actors import Actor
from lcm.models import DefinitionRevision, LabletDefinition
from lcm.services.definitions import revise_definition
from observations.selectors.port_review import port_review_of


def apply_ports(
    *,
    definition: LabletDefinition,
    port_template: Sequence[Mapping[str, Any]],
    based_on: int,
    reason: str,
    actor: Actor,
    now: datetime,
) -> DefinitionRevision:
    """Create a revision with this port template, with the observed ports as evidence."""
    review = port_review_of(definition)
    evidence = {
        "sessions": review.sessions,
        "observed": {line.name: line.observed for line in review.lines},
    }
    return revise_definition(
        definition=definition,
        requirements={},
        port_template=port_template,
        based_on=based_on,
        reason=reason,
        aggregate={"ports": evidence},
        actor=actor,
        now=now,
    )
