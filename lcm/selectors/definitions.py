"""Queries of definitions and revisions."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from lcm.cml.topology.redaction import redact_topology
from lcm.domain.errors import NotFound
from lcm.domain.roles import Role
from lcm.models import DefinitionRevision, LabletDefinition


def definitions() -> QuerySet[LabletDefinition]:
    """Return definitions with their current revision, without topology text."""
    return LabletDefinition.objects.select_related("current_revision").defer(
        "topology_yaml", "links", "current_revision__port_template", "current_revision__before"
    )


def definition_with_everything() -> QuerySet[LabletDefinition]:
    return LabletDefinition.objects.select_related("current_revision")


def shows_configurations(role: Role) -> bool:
    """Return whether a role may read node configurations, which can contain device passwords."""
    return role >= Role.OPERATOR


def topology_text(definition: LabletDefinition, role: Role) -> str:
    """Return the topology as imported, or without node configurations for roles below Operator."""
    text = definition.topology_yaml
    return text if shows_configurations(role) else redact_topology(text)


def revisions_of(definition: LabletDefinition) -> QuerySet[DefinitionRevision]:
    """Return the revisions of a definition, newest first."""
    return definition.revisions.select_related("reverts")


def revision_numbered(definition: LabletDefinition, number: int) -> DefinitionRevision:
    """Return a revision of a definition; raise NotFound if it has no such revision."""
    found = definition.revisions.filter(number=number).first()
    if found is None:
        text = _("%(definition)s has no revision %(number)s.")
        raise NotFound(text % {"definition": definition, "number": number})
    return found


def revisions_to_list(definition: LabletDefinition) -> QuerySet[DefinitionRevision]:
    """Return the revisions of a definition without their evidence, which no list shows."""
    large_fields = ("port_template", "before", "aggregate")
    return revisions_of(definition).defer("aggregate", *(f"reverts__{name}" for name in large_fields))
