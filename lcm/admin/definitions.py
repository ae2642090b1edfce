"""Admin of definitions and their revisions."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import ngettext_lazy

from lcm.admin.actions import apply_to_each, confirm_with_form
from lcm.admin.base import AuditedModelAdmin, ReadOnlyAdmin, ReadOnlyInline, actor_of
from lcm.admin.reason_form import AdminReasonForm
from lcm.models import DefinitionRevision, DefinitionStatus, LabletDefinition
from lcm.models.definitions import RESOURCES
from lcm.services.definitions import set_definition_status
from lcm.web.wording import Plural

LONG = ("topology_yaml", "nodes", "links")
EVIDENCE = ("port_template", "before", "aggregate")


class RevisionInline(ReadOnlyInline):
    model = DefinitionRevision
    fk_name = "definition"
    fields = ("number", *RESOURCES, "basis", "reason", "actor", "created_at", "outcome")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer(*EVIDENCE)


@admin.register(LabletDefinition)
class DefinitionAdmin(AuditedModelAdmin):
    note = (
        "Definitions are imported, revised and deleted on their own pages. "
        "Change requirements with a revision, and the status with the actions of this list."
    )
    note_page = "definition_list"
    may_add = may_delete = False
    list_display = ("name", "version", "status", "system", "pool", "node_count", "needs_review", "created_at")
    list_filter = ("status", "needs_review", "placement", "created_at")
    search_fields = ("name", "version", "description", "pool")
    ordering = ("name", "version", "id")
    sortable_by = ("name", "created_at")
    inlines = (RevisionInline,)
    actions = ("activate", "deprecate")
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

    @admin.action(description="Activate selected %(verbose_name_plural)s")
    def activate(self, request: HttpRequest, queryset: QuerySet[LabletDefinition]) -> None:
        def save(definition: LabletDefinition) -> None:
            status = DefinitionStatus.ACTIVE
            set_definition_status(definition=definition, status=status, actor=actor_of(request))

        apply_to_each(
            self,
            request,
            queryset,
            save=save,
            done=Plural(
                ngettext_lazy("%(count)s definition set to active.", "%(count)s definitions set to active.")
            ),
        )

    @admin.action(description="Deprecate selected %(verbose_name_plural)s …")
    def deprecate(
        self, request: HttpRequest, queryset: QuerySet[LabletDefinition]
    ) -> TemplateResponse | None:
        def save(definition: LabletDefinition, values: dict[str, Any]) -> None:
            status = DefinitionStatus.DEPRECATED
            set_definition_status(definition=definition, status=status, actor=actor_of(request), **values)

        return confirm_with_form(
            self,
            request,
            queryset,
            form_class=AdminReasonForm,
            title="Deprecate definitions",
            submit="Deprecate these definitions",
            save=save,
            done=Plural(
                ngettext_lazy(
                    "%(count)s definition set to deprecated.", "%(count)s definitions set to deprecated."
                )
            ),
        )


@admin.register(DefinitionRevision)
class RevisionAdmin(ReadOnlyAdmin):
    note = "Revisions cannot be edited. Apply or revert one on the definition's page."
    note_page = "definition_list"
    list_display = ("__str__", "definition", *RESOURCES, "basis", "actor", "created_at", "outcome")
    list_filter = ("basis", "outcome")
    search_fields = ("definition__name", "reason", "actor")
    ordering = ("definition_id", "number")
    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[DefinitionRevision]:
        rows = super().get_queryset(request).select_related("definition", "reverts")
        return rows.defer(*EVIDENCE, *(f"definition__{name}" for name in LONG))
