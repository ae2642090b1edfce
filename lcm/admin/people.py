"""Admin of people and their roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from lcm.admin.data_fixes import DataFixAdmin, log_password_change
from lcm.domain.roles import GROUPS
from lcm.models import User

if TYPE_CHECKING:
    AnyUserAdmin = UserAdmin[User]
else:
    AnyUserAdmin = UserAdmin

admin.site.unregister(Group)


@admin.register(User)
class PersonAdmin(DataFixAdmin, AnyUserAdmin):
    """A person's role is their group; Django's individual permissions are not used."""

    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Personal", {"fields": ("first_name", "last_name", "email", "time_zone", "theme")}),
        (
            "Role",
            {
                "fields": ("groups", "is_active", "is_staff", "is_superuser"),
                "description": "The groups Viewer, Operator and Admin are the roles. "
                "Data fixes require the role Admin and staff status.",
            },
        ),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")
    filter_horizontal = ("groups",)
    list_display = ("username", "email", "first_name", "last_name", "is_active", "is_staff", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    search_fields = ("username", "first_name", "last_name", "email")
    ordering = ("username",)
    sortable_by = ("username",)

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> Any:
        own = super().get_readonly_fields(request, obj)
        return own if _is_superuser(request) else (*own, "is_superuser")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let only superusers change a superuser's account, because its password gives full access."""
        return super().has_change_permission(request, obj) and _may_edit(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_edit(request, obj) and obj != request.user

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        with transaction.atomic():
            return super().user_change_password(request, id, form_url)

    def log_change(self, request: HttpRequest, obj: object, message: object) -> Any:
        """Log password changes only; other edits are logged with their fields on save."""
        if request.resolver_match and request.resolver_match.url_name == "auth_user_password_change":
            log_password_change(request, obj)


@admin.register(Group)
class RoleAdmin(DataFixAdmin, GroupAdmin):
    """Shows the three groups that are roles, read-only."""

    fields = ("name",)
    filter_horizontal = ()
    search_fields = ("name",)
    note = "Viewer, Operator and Admin are LCM's roles. Assign them on a person's page."

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and not _is_role(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not _is_role(obj)


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def _may_edit(request: HttpRequest, person: User | None) -> bool:
    return person is None or not person.is_superuser or _is_superuser(request)


def _is_role(group: Group | None) -> bool:
    return group is not None and group.name in GROUPS
