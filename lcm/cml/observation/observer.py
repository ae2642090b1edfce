"""Observation of a running lab: all calls in parallel under one deadline. Failed parts carry a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from lcm.cml.client.client import CmlClient
from lcm.cml.client.errors import CmlError
from lcm.cml.client.results import CmlInterface, CmlNode, Entries, InterfacesByNode
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
    version = asyncio.create_task(client.version())
    nodes = asyncio.create_task(client.nodes(lab_id))
    interfaces = asyncio.create_task(_interfaces(client, lab_id, version, nodes))
    addresses = asyncio.create_task(client.layer3_addresses(lab_id))
    stats = asyncio.create_task(client.get_lab_simulation_stats(lab_id))
    pools = asyncio.create_task(client.resource_pool_usage())
    calls: tuple[asyncio.Task[Any], ...] = (version, nodes, interfaces, addresses, stats, pools)
    try:
        await asyncio.wait(calls, timeout=deadline)
    finally:
        for task in calls:
            task.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    timed_out = FailedPart(f"no response within the observation deadline of {deadline:g} s")
    known_version = _outcome(version, timed_out)
    return summarize(
        ObservedParts(
            nodes=_outcome(nodes, timed_out),
            interfaces=_outcome(interfaces, timed_out),
            addresses=_outcome(addresses, timed_out),
            stats=_outcome(stats, timed_out),
            pools=_outcome(pools, timed_out),
        ),
        ResourceObservation(
            observed_at=observed_at,
            observer=observer,
            controller=controller,
            lab_id=lab_id,
            cml_version=str(known_version) if isinstance(known_version, Version) else None,
        ),
    )


async def _interfaces(
    client: CmlClient,
    lab_id: str,
    version: asyncio.Task[Version | None],
    nodes: asyncio.Task[Entries[CmlNode]],
) -> Entries[CmlInterface] | InterfacesByNode:
    """Fetch all interfaces in one call, or per node once the nodes are known if CML is older."""
    await asyncio.wait([version])
    interfaces = await client.bulk_interfaces(lab_id)
    if interfaces is not None:
        return interfaces
    return await client.interfaces_one_by_one(lab_id, [node.id for node in (await nodes).items])


def _outcome(task: asyncio.Task[T], timed_out: FailedPart) -> T | FailedPart:
    if task.cancelled():
        return timed_out
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, CmlError):
        return FailedPart(str(error))
    return FailedPart(f"could not be read: {type(error).__name__}: {error}")
