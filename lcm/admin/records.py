"""Admin of the change log, tokens, idempotent responses, jobs, heartbeats and the change feed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.apps import apps
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from lcm.admin.data_fixes import DataFixAdmin, ReadOnlyAdmin
from lcm.models import (
    ApiToken,
    ChangeLog,
    FeedEntry,
    FeedHead,
    Heartbeat,
    IdempotentResponse,
    Job,
    SavedView,
    User,
)

MAX_MATCHES = 200


class ObjectKindFilter(admin.SimpleListFilter):
    """Filter by kind of object; choices come from the models, because a DISTINCT would scan the log."""

    title = "kind of object"
    parameter_name = "object_type"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        models = apps.get_app_config("lcm").get_models()
        return sorted((str(model._meta.model_name), str(model._meta.verbose_name)) for model in models)

    def queryset(self, request: HttpRequest, queryset: QuerySet[ChangeLog]) -> QuerySet[ChangeLog]:
        return queryset.filter(object_type=self.value()) if self.value() else queryset


@admin.register(ChangeLog)
class ChangeAdmin(ReadOnlyAdmin):
    note = "The change log is append-only."
    note_page = "change_list"
    list_display = ("at", "actor", "event", "object_type", "object_label", "message", "reason")
    list_filter = ("at", ObjectKindFilter)
    search_fields = ("object_id",)
    search_help_text = "Full ID of an object, or name of the person who made the change."
    ordering = ("-at", "-id")
    sortable_by = ("at",)
    # The log outlives people: it shows the actor's name and does not follow `user`.
    exclude = ("user",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[ChangeLog], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        people = User.objects.filter(username__icontains=text).values_list("pk", flat=True)
        return queryset.filter(Q(object_id=_full_id(text)) | Q(user__in=list(people[:MAX_MATCHES]))), False


@admin.register(SavedView)
class SavedViewAdmin(ReadOnlyAdmin):
    note = "People save, change and delete their views on the lists."
    list_display = ("name", "list_name", "owner", "shared", "updated_at")
    list_filter = ("shared",)
    list_select_related = ("owner",)
    search_fields = ("name",)
    ordering = ("name",)


@admin.register(ApiToken)
class TokenAdmin(DataFixAdmin):
    note = "Create, rotate and revoke tokens on the Tokens page. Only the name can be corrected here."
    note_page = "token_list"
    may_add = False
    list_display = ("name", "kind", "user", "hint", "state", "created_at", "expires_at", "last_used_at")
    list_filter = ("kind", "created_at", "expires_at")
    list_select_related = ("user",)
    search_fields = ("name", "hint", "user__username")
    ordering = ("-created_at", "-id")
    sortable_by = ("name", "created_at", "expires_at")
    fields = (
        "name",
        "kind",
        "user",
        "scopes",
        "hint",
        "created_at",
        "expires_at",
        "revoked_at",
        "last_used_at",
    )
    readonly_fields = fields[1:]


@admin.register(IdempotentResponse)
class IdempotentResponseAdmin(ReadOnlyAdmin):
    """Hides the response bodies, which may contain data that only the requester may see."""

    list_display = ("key", "principal", "status", "created_at")
    list_filter = ("created_at",)
    search_fields = ("key", "principal")
    ordering = ("-created_at", "-id")
    sortable_by = ("created_at",)
    fields = ("principal", "key", "fingerprint", "status", "created_at")


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    note = "Long-running jobs that people started; their pages show the progress. Deleted after some days."
    list_display = ("title", "state", "actor", "done", "total", "created_at")
    list_filter = ("state", "created_at")
    search_fields = ("title", "actor", "kind")
    ordering = ("-created_at", "-id")
    sortable_by = ("created_at",)


@admin.register(Heartbeat)
class HeartbeatAdmin(DataFixAdmin):
    note = "LCM's processes write heartbeats. Delete the heartbeat of a process that no longer exists."
    may_add = may_change = False
    list_display = ("name", "at")
    search_fields = ("name",)
    ordering = ("name",)


@admin.register(FeedEntry)
class FeedEntryAdmin(ReadOnlyAdmin):
    note = "Changes of sessions and slots that controllers watch. Deleted after a while."
    list_display = ("revision", "kind", "object_id", "pool", "at")
    list_filter = ("kind", "at")
    search_fields = ("object_id", "pool")
    ordering = ("-id",)
    sortable_by = ("at",)


@admin.register(FeedHead)
class FeedHeadAdmin(ReadOnlyAdmin):
    note = "Newest and oldest revision of the change feed."
    list_display = ("revision", "pruned_revision")
    search_fields = ("revision",)
    ordering = ("pk",)


def _full_id(text: str) -> str:
    """Normalise a UUID to the form that the log stores."""
    try:
        return str(UUID(text))
    except ValueError:
        return text
