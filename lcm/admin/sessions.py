"""Admin of sessions, their history and their kernels."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import ngettext_lazy

from lcm.admin.actions import confirm_with_form
from lcm.admin.base import AuditedModelAdmin, ReadOnlyInline, actor_of
from lcm.admin.reason_form import AdminReasonForm
from lcm.domain.lifecycle import TRANSITIONS, SessionStatus
from lcm.models import Kernel, LabletSession, SessionTransition
from lcm.models.definitions import RESOURCES
from lcm.selectors.sessions import search_sessions, sessions
from lcm.services.sessions import cancel_session, transition_session
from lcm.web.wording import Plural

TARGETS = [
    status for status in SessionStatus if any(status in following for following in TRANSITIONS.values())
]
FOUND_AT_MOST = 200


class TransitionForm(AdminReasonForm):
    to = forms.TypedChoiceField(
        label="Move to", choices=[(status.value, status.label) for status in TARGETS], coerce=SessionStatus
    )
    field_order = ("to", "reason")


class TransitionInline(ReadOnlyInline):
    model = SessionTransition
    fields = ("from_status", "to_status", "at", "actor", "reason", "attempt")


class KernelInline(ReadOnlyInline):
    model = Kernel
    fields = ("node_label", "node_definition", *RESOURCES, "status", "started_at", "terminated_at")


@admin.register(LabletSession)
class SessionAdmin(AuditedModelAdmin):
    note = (
        "Request sessions and move them to another pool on the Sessions page. "
        "Change a status with the actions of this list."
    )
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
    actions = ("cancel", "move")
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

    @admin.action(description="Cancel selected %(verbose_name_plural)s …", permissions=["change"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[LabletSession]) -> TemplateResponse | None:
        def save(session: LabletSession, values: dict[str, Any]) -> None:
            cancel_session(
                session=session, actor=actor_of(request), now=timezone.now(), reason=values["reason"]
            )

        return confirm_with_form(
            self,
            request,
            queryset,
            form_class=AdminReasonForm,
            title="Cancel sessions",
            submit="Cancel these sessions",
            save=save,
            done=Plural(
                ngettext_lazy(
                    "%(count)s session cancelled or being stopped.",
                    "%(count)s sessions cancelled or being stopped.",
                )
            ),
        )

    @admin.action(description="Move to …", permissions=["change"])
    def move(self, request: HttpRequest, queryset: QuerySet[LabletSession]) -> TemplateResponse | None:
        def save(session: LabletSession, values: dict[str, Any]) -> None:
            transition_session(session=session, actor=actor_of(request), now=timezone.now(), **values)

        return confirm_with_form(
            self,
            request,
            queryset,
            form_class=TransitionForm,
            title="Move sessions to another status",
            submit="Move these sessions",
            save=save,
            done=Plural(ngettext_lazy("%(count)s session moved.", "%(count)s sessions moved.")),
        )


class SessionRelatedAdmin(AuditedModelAdmin):
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
        return queryset.filter(session__in=list(newest[:FOUND_AT_MOST])), False


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
        *RESOURCES,
        "status",
        "started_at",
        "terminated_at",
    )
    list_select_related = ("session",)
    ordering = ("session_id", "node_label")
    sortable_by = ()
    readonly_fields = ("session", "node_label", "node_definition", *RESOURCES, "status", "attempt")
