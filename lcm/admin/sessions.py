"""Admin of sessions, their history and their kernels."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from lcm.admin.data_fixes import DataFixAdmin, ReadOnlyInline
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import Kernel, LabletSession, SessionTransition
from lcm.selectors.sessions import search_sessions, sessions

MAX_MATCHES = 200


class TransitionInline(ReadOnlyInline):
    model = SessionTransition
    fields = ("from_status", "to_status", "at", "actor", "reason", "attempt")


class KernelInline(ReadOnlyInline):
    model = Kernel
    fields = ("node_label", "node_definition", *RESOURCE_NAMES, "status", "started_at", "terminated_at")


@admin.register(LabletSession)
class SessionAdmin(DataFixAdmin):
    note = "Request, move and cancel sessions on the Sessions page. Statuses follow the lifecycle."
    note_page = "session_list"
    may_add = may_delete = False
    list_display = (
        "__str__",
        "definition",
        "owner",
        "project",
        "status",
        "priority",
        "pool",
        "starts_at",
        "created_at",
    )
    list_filter = ("status", "priority", "created_at", "starts_at")
    list_select_related = ("definition", "owner", "project__domain", "revision")
    search_fields = ("id",)
    search_help_text = "Start of an id, or name of a definition, owner, project or domain."
    ordering = ("-created_at", "-id")
    sortable_by = ("status", "priority", "starts_at", "created_at")
    autocomplete_fields = ("owner", "project")
    inlines = (TransitionInline, KernelInline)
    fieldsets = (
        (None, {"fields": ("id", "definition", "revision", "owner", "project")}),
        ("Timeslot", {"fields": ("starts_at", "ends_at", "priority", "pool")}),
        ("Status", {"fields": ("status", "status_since", "attempt", "created_at")}),
    )
    # The session's reservation copies its pool and priority, so both must change together.
    readonly_fields = (
        "id",
        "definition",
        "revision",
        "priority",
        "pool",
        "status",
        "status_since",
        "attempt",
        "created_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[LabletSession]:
        return sessions().order_by(*self.ordering)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[LabletSession], bool]:
        """Search by indexed columns, as the Sessions page does: there may be a million rows."""
        text = search_term.strip()
        return (search_sessions(queryset, text) if text else queryset), False


class SessionRelatedAdmin(DataFixAdmin):
    """Rows that belong to sessions, in index order; a search finds the sessions first."""

    search_fields = ("session__id",)
    search_help_text = "Start of a session's id, or name of its definition, owner, project or domain."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        newest = search_sessions(LabletSession.objects.all(), text).values_list("pk", flat=True)
        return queryset.filter(session__in=list(newest[:MAX_MATCHES])), False


@admin.register(SessionTransition)
class TransitionAdmin(SessionRelatedAdmin):
    may_add = may_change = may_delete = False
    list_display = ("__str__", "session", "at", "actor", "reason", "attempt")
    list_select_related = ("session",)
    ordering = ("session_id", "at", "id")
    sortable_by = ()


@admin.register(Kernel)
class KernelAdmin(SessionRelatedAdmin):
    """Kernels follow their session's status; only their times can be corrected."""

    note = "A kernel's status follows its session; its resources come from the session's revision."
    note_page = "session_list"
    may_add = may_delete = False
    list_display = (
        "node_label",
        "session",
        "node_definition",
        *RESOURCE_NAMES,
        "status",
        "started_at",
        "terminated_at",
    )
    list_select_related = ("session",)
    ordering = ("session_id", "node_label")
    sortable_by = ()
    readonly_fields = ("session", "node_label", "node_definition", *RESOURCE_NAMES, "status", "attempt")
