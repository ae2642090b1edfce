"""Effects: functions of other apps that run in the transaction of a change and commit or fail with it.

Each app names its effects in its extension.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Protocol
from uuid import UUID

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ApiToken, LabletDefinition, LabletSession


class SessionEffect(Protocol):
    """A session was requested or its priority changed; an effect may reject it by raising InvalidInput."""

    def __call__(self, *, session: LabletSession, now: datetime) -> object: ...


class TransitionEffect(Protocol):
    """Sessions made the same transition. `lab_removed`: nothing of their labs is left on the workers."""

    def __call__(
        self,
        *,
        session_ids: Sequence[UUID],
        old: SessionStatus,
        new: SessionStatus,
        now: datetime,
        lab_removed: bool,
    ) -> object: ...


class DefinitionEffect(Protocol):
    """A definition was created, or has a new current revision."""

    def __call__(self, *, definition: LabletDefinition, now: datetime) -> object: ...


class HeartbeatEffect(Protocol):
    """A process is running; `address` serves its metrics and may be empty.

    `token` is a controller's token, None for LCM's own processes. An effect may raise StateConflict.
    """

    def __call__(
        self,
        *,
        kind: str,
        name: str,
        address: str,
        token: ApiToken | None,
        clock_skew: Decimal | None = None,
        now: datetime,
    ) -> object: ...


class StopEffect(Protocol):
    """A process has ended; an effect may raise StateConflict."""

    def __call__(self, *, kind: str, name: str, token: ApiToken | None, now: datetime) -> object: ...
