"""Observing a running lab: all calls at once under one deadline; what fails is missing, with its reason."""

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
    """What the lab has and uses at this moment; never raises for what CML does or does not answer."""
    observed_at = now()
    asked = _ask(client, lab_id)
    try:
        await asyncio.wait(asked.all(), timeout=deadline)
    finally:
        for task in asked.all():
            task.cancel()
        await asyncio.gather(*asked.all(), return_exceptions=True)
    too_late = f"no answer within the {deadline:g} s of the whole observation"
    version = _outcome(asked.version, too_late)
    return summarize(
        ObservedParts(
            nodes=_outcome(asked.nodes, too_late),
            interfaces=_outcome(asked.interfaces, too_late),
            addresses=_outcome(asked.addresses, too_late),
            stats=_outcome(asked.stats, too_late),
            pools=_outcome(asked.pools, too_late),
        ),
        observed_at=observed_at,
        observer=observer,
        controller=controller,
        lab_id=lab_id,
        cml_version=str(version) if isinstance(version, Version) else None,
    )


@dataclass(frozen=True)
class _PendingCalls:
    """The parts of an observation, each on its way."""

    version: asyncio.Task[Version | None]
    nodes: asyncio.Task[Entries[CmlNode]]
    interfaces: asyncio.Task[Entries[CmlInterface] | InterfacesByNode]
    addresses: asyncio.Task[Layer3Addresses]
    stats: asyncio.Task[SimulationStats]
    pools: asyncio.Task[tuple[ResourcePoolUsage, ...] | None]

    def all(self) -> tuple[asyncio.Task[Any], ...]:
        return self.version, self.nodes, self.interfaces, self.addresses, self.stats, self.pools


def _ask(client: CmlClient, lab_id: str) -> _PendingCalls:
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
    """In one answer beside the nodes, or where CML is older, for each node once they are known."""
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
    return FailedPart(f"it could not be read: {type(error).__name__}: {error}")
