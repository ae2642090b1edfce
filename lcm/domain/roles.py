"""Who may do what: three roles, each including the ones below it."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class Role(IntEnum):
    """Kept as groups of these names; a person's role is the highest of theirs."""

    NONE = 0
    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3

    @property
    def label(self) -> str:
        return self.name.capitalize()


GROUPS = {role.label: role for role in Role if role}


def role_of(user: Any) -> Role:
    """The role of a logged-in person, asked once a request; controllers and strangers have none."""
    if not getattr(user, "is_active", False) or not hasattr(user, "groups"):
        return Role.NONE
    if user.is_superuser:
        return Role.ADMIN
    if not hasattr(user, "_role"):
        user._role = max(
            (GROUPS.get(group.name, Role.NONE) for group in user.groups.all()), default=Role.NONE
        )
    return Role(user._role)
