"""Roles of people. Each role includes the lower ones."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class Role(IntEnum):
    """Stored as membership in the group of the same name; a person has the highest role of their groups."""

    NONE = 0
    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3

    @property
    def label(self) -> str:
        return self.name.capitalize()


GROUPS = {role.label: role for role in Role if role}


def role_of(user: Any) -> Role:
    """Return the role of a user, cached on the user object; NONE for controllers and anonymous users."""
    if not getattr(user, "is_active", False) or not hasattr(user, "groups"):
        return Role.NONE
    if user.is_superuser:
        return Role.ADMIN
    if not hasattr(user, "_role"):
        user._role = max(
            (GROUPS.get(group.name, Role.NONE) for group in user.groups.all()), default=Role.NONE
        )
    return Role(user._role)
