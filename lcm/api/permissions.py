"""The permission class of the API; each view declares a policy per action."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from lcm.api.authentication import token_of_controller
from lcm.domain.access import ADMIN, AccessPolicy
from lcm.domain.roles import role_of

if TYPE_CHECKING:
    from rest_framework.views import APIView


def access_policy_of(view: APIView) -> AccessPolicy:
    """Return the policy of the requested action; an action without a policy is for Admins only."""
    access: dict[str, AccessPolicy] = getattr(view, "access", {})
    action = getattr(view, "action", None) or (view.request.method or "").lower()
    return access.get(action, ADMIN)


class AccessPermission(BasePermission):
    """Checks the role of people and the scope of controllers."""

    message = _("Your role does not allow this.")

    def has_permission(self, request: Request, view: APIView) -> bool:
        rule = access_policy_of(view)
        if token := token_of_controller(request):
            if rule.scope:
                return rule.scope in token.scopes
            return rule.controllers and bool(token.pools)
        return request.user.is_authenticated and rule.people and role_of(request.user) >= rule.role
