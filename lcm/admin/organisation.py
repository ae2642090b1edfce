"""Admin of domains, projects and memberships."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from lcm.admin.access import AdminOnlyMixin
from lcm.admin.base import AnyTabularInline, AuditedModelAdmin
from lcm.admin.deletion import first_rows
from lcm.domain.lifecycle import ACTIVE
from lcm.models import Domain, LabletSession, Membership, Project

MEMBERS_ON_PAGE = 100


@admin.register(Domain)
class DomainAdmin(AuditedModelAdmin):
    list_display = ("name", "description", "created_at")
    list_filter = ("created_at",)
    search_fields = ("name", "description")
    readonly_fields = ("created_at", "updated_at")
    ordering = ("name",)
    sortable_by = ("name",)


class MembershipInline(AdminOnlyMixin, AnyTabularInline):
    """Adds members; removal has its own page, which checks the member's sessions first."""

    model = Membership
    may_change = may_delete = False
    autocomplete_fields = ("user",)
    readonly_fields = ("joined_at",)
    extra = 0
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("user", "project")


@admin.register(Project)
class ProjectAdmin(AuditedModelAdmin):
    list_display = ("name", "domain", "description", "created_at")
    list_filter = ("created_at",)
    list_select_related = ("domain",)
    search_fields = ("name", "description", "domain__name")
    autocomplete_fields = ("domain",)
    readonly_fields = ("created_at", "updated_at")
    ordering = ("name", "id")
    sortable_by = ("name",)
    inlines = (MembershipInline,)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Keep a project in its domain, because usage has been counted there."""
        own = super().get_readonly_fields(request, obj)
        return (*own, "domain") if obj else own

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        """Hide the inline for projects with very many members; the membership list shows them."""
        crowded = obj and obj.memberships.order_by()[MEMBERS_ON_PAGE : MEMBERS_ON_PAGE + 1].exists()
        return () if crowded else super().get_inlines(request, obj)


@admin.register(Membership)
class MembershipAdmin(AuditedModelAdmin):
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

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Make existing memberships read-only; to move a person, add one membership and delete the other."""
        own = super().get_readonly_fields(request, obj)
        return (*own, "user", "project") if obj else own

    def protecting_objects(self, obj: Membership) -> list[str]:
        """Return the active sessions that keep their owner in the project."""
        return first_rows(
            LabletSession.objects.filter(project=obj.project_id, owner=obj.user_id, status__in=ACTIVE)
        )
