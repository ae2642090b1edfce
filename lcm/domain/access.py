"""Access policies of pages and API calls. Every URL has one; a test checks them all."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from lcm.domain.roles import Role


@dataclass(frozen=True)
class AccessPolicy:
    """The role a person needs (NONE: no sign-in), and whether controllers have access within their scopes.

    If `scope` is set, only tokens with that scope have access.
    """

    role: Role
    controllers: bool = False
    people: bool = True
    scope: str = ""


@dataclass(frozen=True)
class ControllerScope:
    """The pools a controller token may read and change, or one slot if the token names a slot."""

    pools: tuple[str, ...]
    slot_id: UUID | None = None


PUBLIC = AccessPolicy(Role.NONE)
VIEWER = AccessPolicy(Role.VIEWER)
OPERATOR = AccessPolicy(Role.OPERATOR)
ADMIN = AccessPolicy(Role.ADMIN)
VIEWER_OR_CONTROLLER = AccessPolicy(Role.VIEWER, controllers=True)
CONTROLLER = AccessPolicy(Role.ADMIN, controllers=True, people=False)
PROMETHEUS_SCOPE = "prometheus:targets"
PROMETHEUS = AccessPolicy(Role.ADMIN, scope=PROMETHEUS_SCOPE)
