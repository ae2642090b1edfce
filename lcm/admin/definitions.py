"""Admin of definitions and their revisions."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from lcm.admin.data_fixes import DataFixAdmin, ReadOnlyAdmin, ReadOnlyInline
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import DefinitionRevision, LabletDefinition

LONG = ("topology_yaml", "nodes", "links")
EVIDENCE = ("port_template", "before", "aggregate")


class RevisionInline(ReadOnlyInline):
    model = DefinitionRevision
    fk_name = "definition"
    fields = ("number", *RESOURCE_NAMES, "basis", "reason", "actor", "created_at", "outcome")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer(*EVIDENCE)


@admin.register(LabletDefinition)
class DefinitionAdmin(DataFixAdmin):
    note = "Import, revise, activate, deprecate and delete definitions on their own pages."
    note_page = "definition_list"
    may_add = may_delete = False
    list_display = ("name", "version", "status", "system", "pool", "node_count", "needs_review", "created_at")
    list_filter = ("status", "needs_review", "placement", "created_at")
    search_fields = ("name", "version", "description", "pool")
    ordering = ("name", "version", "id")
    sortable_by = ("name", "created_at")
    inlines = (RevisionInline,)
    fieldsets = (
        (None, {"fields": ("name", "version", "description", "status", "current_revision")}),
        (
            "Placement",
            {
                "fields": (
                    "system",
                    "pool",
                    "placement",
                    "preemptible",
                    "awaits_arrival",
                    "slot_labels",
                    "max_duration",
                )
            },
        ),
        ("Review", {"fields": ("needs_review", "review_reasons", "review_since")}),
        ("Topology", {"fields": ("node_count", "topology_hash", *LONG), "classes": ("collapse",)}),
        ("Dates", {"fields": ("created_at", "updated_at")}),
    )
    readonly_fields = (
        "status",
        "current_revision",
        "needs_review",
        "review_reasons",
        "review_since",
        "node_count",
        "topology_hash",
        *LONG,
        "created_at",
        "updated_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[LabletDefinition]:
        return super().get_queryset(request).defer(*LONG)


@admin.register(DefinitionRevision)
class RevisionAdmin(ReadOnlyAdmin):
    note = "Revisions cannot be edited. Apply or revert one on the definition's page."
    note_page = "definition_list"
    list_display = ("__str__", "definition", *RESOURCE_NAMES, "basis", "actor", "created_at", "outcome")
    list_filter = ("basis", "outcome")
    search_fields = ("definition__name", "reason", "actor")
    ordering = ("definition_id", "number")
    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[DefinitionRevision]:
        rows = super().get_queryset(request).select_related("definition", "reverts")
        return rows.defer(*EVIDENCE, *(f"definition__{name}" for name in LONG))
