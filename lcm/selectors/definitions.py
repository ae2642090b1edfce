"""Reading definitions."""

from __future__ import annotations

from django.db.models import QuerySet

from lcm.models import DefinitionRevision, LabletDefinition


def definitions() -> QuerySet[LabletDefinition]:
    """Definitions with their current revision, without the text of their topology."""
    return LabletDefinition.objects.select_related("current_revision").defer(
        "topology_yaml", "links", "current_revision__port_template", "current_revision__before"
    )


def definition_with_everything() -> QuerySet[LabletDefinition]:
    return LabletDefinition.objects.select_related("current_revision")


def revisions_of(definition: LabletDefinition) -> QuerySet[DefinitionRevision]:
    """Newest first."""
    return definition.revisions.select_related("reverts")


def revisions_to_list(definition: LabletDefinition) -> QuerySet[DefinitionRevision]:
    """Without ports and evidence, which no list shows."""
    long = ("port_template", "before", "aggregate")
    return revisions_of(definition).defer(*long, *(f"reverts__{name}" for name in long))
