"""Observation of a running lab: all calls in parallel under one deadline. Failed parts carry a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from lcm.cml.client.client import CmlClient
from lcm.cml.client.errors import CmlError
from lcm.cml.client.results import (
    CmlInterface,
    CmlNode,
    Entries,
    InterfacesByNode,
    Layer3Addresses,
    SimulationStats,
)
from lcm.cml.client.system_results import ResourcePoolUsage
from lcm.cml.client.version import Version
from lcm.cml.observation.model import LABLET_CONTROLLER, ResourceObservation
from lcm.cml.observation.summary import FailedPart, ObservedParts, summarize

T = TypeVar("T")

DEADLINE = 30.0


async def observe_lab(
    client: CmlClient,
    lab_id: str,
    *,
    observer: str = LABLET_CONTROLLER,
    controller: str | None = None,
    deadline: float = DEADLINE,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> ResourceObservation:
    """Return what the lab has and uses now. Never raises because of CML's responses."""
    observed_at = now()
    pending = _start_calls(client, lab_id)
    try:
        await asyncio.wait(pending.all(), timeout=deadline)
    finally:
        for task in pending.all():
            task.cancel()
        await asyncio.gather(*pending.all(), return_exceptions=True)
    too_late = f"no response within the observation deadline of {deadline:g} s"
    version = _outcome(pending.version, too_late)
    return summarize(
        ObservedParts(
            nodes=_outcome(pending.nodes, too_late),
            interfaces=_outcome(pending.interfaces, too_late),
            addresses=_outcome(pending.addresses, too_late),
            stats=_outcome(pending.stats, too_late),
            pools=_outcome(pending.pools, too_late),
        ),
        observed_at=observed_at,
        observer=observer,
        controller=controller,
        lab_id=lab_id,
        cml_version=str(version) if isinstance(version, Version) else None,
    )


@dataclass(frozen=True)
class _PendingCalls:
    """The calls of an observation in progress."""

    version: asyncio.Task[Version | None]
    nodes: asyncio.Task[Entries[CmlNode]]
    interfaces: asyncio.Task[Entries[CmlInterface] | InterfacesByNode]
    addresses: asyncio.Task[Layer3Addresses]
    stats: asyncio.Task[SimulationStats]
    pools: asyncio.Task[tuple[ResourcePoolUsage, ...] | None]

    def all(self) -> tuple[asyncio.Task[Any], ...]:
        return self.version, self.nodes, self.interfaces, self.addresses, self.stats, self.pools


def _start_calls(client: CmlClient, lab_id: str) -> _PendingCalls:
    version = asyncio.create_task(client.version())
    nodes = asyncio.create_task(client.nodes(lab_id))
    return _PendingCalls(
        version=version,
        nodes=nodes,
        interfaces=asyncio.create_task(_interfaces(client, lab_id, version, nodes)),
        addresses=asyncio.create_task(client.layer3_addresses(lab_id)),
        stats=asyncio.create_task(client.get_lab_simulation_stats(lab_id)),
        pools=asyncio.create_task(client.resource_pool_usage()),
    )


async def _interfaces(
    client: CmlClient,
    lab_id: str,
    version: asyncio.Task[Version | None],
    nodes: asyncio.Task[Entries[CmlNode]],
) -> Entries[CmlInterface] | InterfacesByNode:
    """Fetch all interfaces in one call, or per node once the nodes are known if CML is older."""
    await asyncio.wait([version])
    found = await client.bulk_interfaces(lab_id)
    if found is not None:
        return found
    return await client.interfaces_one_by_one(lab_id, [node.id for node in (await nodes).items])


def _outcome(task: asyncio.Task[T], too_late: str) -> T | FailedPart:
    if task.cancelled():
        return FailedPart(too_late)
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, CmlError):
        return FailedPart(str(error))
    return FailedPart(f"could not be read: {type(error).__name__}: {error}")
