"""What apps add to scheduling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from lcm.extensions import Extension

if TYPE_CHECKING:
    from scheduling.coordination.handlers.base import SessionLifecycleHandler
    from scheduling.coordination.observer import ObserverHandler
    from scheduling.selectors.fair_share import FactorReader, SubsetReader


@dataclass(frozen=True, kw_only=True)
class SchedulingExtension(Extension):
    """An extension that also adds to scheduling."""

    handlers: Sequence[SessionLifecycleHandler] = ()
    observers: Sequence[ObserverHandler[Any]] = ()
    # Fair-share factors of all members of a pool, and of selected members; of the first app that has them.
    pool_factors: Sequence[FactorReader] = ()
    member_factors: Sequence[SubsetReader] = ()
    # Run before the ports of removed labs become free, with the ids of the sessions.
    ports_released: Sequence[Callable[[Sequence[UUID]], None]] = ()
