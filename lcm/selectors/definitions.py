"""Reading definitions."""

from __future__ import annotations

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from lcm.models import DefinitionRevision, LabletDefinition, LabletSession


def definitions() -> QuerySet[LabletDefinition]:
    """Definitions with their current revision, without the text of their topology."""
    return LabletDefinition.objects.select_related("current_revision").defer(
        "topology_yaml", "links", "current_revision__port_template", "current_revision__before"
    )


def definition_with_everything() -> QuerySet[LabletDefinition]:
    return LabletDefinition.objects.select_related("current_revision")


def revisions_of(definition: LabletDefinition) -> QuerySet[DefinitionRevision]:
    """Newest first, each with how many sessions pinned it."""
    pinned = (
        LabletSession.objects.filter(revision=OuterRef("pk"))
        .order_by()
        .values("revision")
        .annotate(n=Count("pk"))
    )
    return definition.revisions.select_related("reverts").annotate(
        session_count=Coalesce(Subquery(pinned.values("n")), 0)
    )
