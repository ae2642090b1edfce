"""Actors: a person, a controller, or LCM itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from lcm.models import User


@dataclass(frozen=True)
class Actor:
    """The originator of a change. Every service takes one and records it in the change log."""

    label: str
    user_id: UUID | None = None
    token_id: UUID | None = None

    @classmethod
    def person(cls, user: User, token_id: UUID | None = None) -> Actor:
        return cls(label=user.get_username(), user_id=user.pk, token_id=token_id)

    @classmethod
    def controller(cls, name: str, token_id: UUID) -> Actor:
        return cls(label=f"controller {name}", token_id=token_id)


SYSTEM = Actor(label="LCM")
