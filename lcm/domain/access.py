"""Rules on who may use a page or an API call. Every URL has one; a test walks them all."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from lcm.domain.roles import Role


@dataclass(frozen=True)
class AccessPolicy:
    """The role a person needs (none: everybody), and whether controllers may, within their scopes.

    With a `scope` only tokens that have it may, whatever else they may see.
    """

    role: Role
    controllers: bool = False
    people: bool = True
    scope: str = ""


@dataclass(frozen=True)
class ControllerScope:
    """The pools that a controller's token may see and change; if it names a slot, that slot alone."""

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
