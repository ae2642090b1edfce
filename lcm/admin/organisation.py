"""Admin of domains, projects and memberships."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from lcm.admin.data_fixes import DataFixAdmin
from lcm.admin.deletion import first_rows
from lcm.domain.lifecycle import ACTIVE
from lcm.models import Domain, LabletSession, Membership, Project


@admin.register(Domain)
class DomainAdmin(DataFixAdmin):
    list_display = ("name", "description", "created_at")
    list_filter = ("created_at",)
    search_fields = ("name", "description")
    readonly_fields = ("created_at", "updated_at")
    ordering = ("name",)
    sortable_by = ("name",)


@admin.register(Project)
class ProjectAdmin(DataFixAdmin):
    list_display = ("name", "domain", "description", "created_at")
    list_filter = ("created_at",)
    list_select_related = ("domain",)
    search_fields = ("name", "description", "domain__name")
    autocomplete_fields = ("domain",)
    readonly_fields = ("created_at", "updated_at")
    ordering = ("name", "id")
    sortable_by = ("name",)

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> Any:
        """Keep a project in its domain, because usage has been counted there."""
        own = super().get_readonly_fields(request, obj)
        return (*own, "domain") if obj else own


@admin.register(Membership)
class MembershipAdmin(DataFixAdmin):
    list_display = ("user", "project", "domain", "joined_at")
    list_select_related = ("user", "project__domain")
    search_fields = ("user__username", "project__name", "project__domain__name")
    autocomplete_fields = ("user", "project")
    readonly_fields = ("joined_at",)
    ordering = ("project_id", "user_id")
    sortable_by = ()

    @admin.display(description="domain")
    def domain(self, membership: Membership) -> str:
        return membership.project.domain.name

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> Any:
        """Make existing memberships read-only; to move a person, add one membership and delete the other."""
        own = super().get_readonly_fields(request, obj)
        return (*own, "user", "project") if obj else own

    def protecting_objects(self, obj: Membership) -> list[str]:
        """Return the active sessions that keep their owner in the project."""
        return first_rows(
            LabletSession.objects.filter(project=obj.project_id, owner=obj.user_id, status__in=ACTIVE)
        )
