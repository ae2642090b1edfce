"""Permissions in the admin: the Admin role, within what each model allows."""

from __future__ import annotations

from django.http import HttpRequest

from lcm.domain.roles import Role, role_of


class AdminOnlyMixin:
    """Permissions by role instead of Django's permission rows; for model admins and inlines."""

    may_add = True
    may_change = True
    may_delete = True

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_admin(request)

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return is_admin(request)

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return self.may_add and is_admin(request)

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return self.may_change and is_admin(request)

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return self.may_delete and is_admin(request)


def is_admin(request: HttpRequest) -> bool:
    return role_of(request.user) >= Role.ADMIN
