"""Resource usage of running labs, read for Prometheus."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping

from lcm.cml.client.errors import CmlError, CmlNotFound
from lcm.cml.client.results import CmlNode, Entries, LinkEnds, SimulationStats
from lcm.cml.observation.node_usage import observe_node
from lcm.controller.metrics import TOTAL, MetricSample, samples_of
from lcm.controller.model import HAS_A_LAB, Session
from lcm.controller.pool_leases import PoolLeases
from lcm.controller.stage_context import PartOnWorker, StageContext
from lcm.controller.worker import ManagedWorker

# A node has one counter for each disk.
DISK = re.compile(r"block\d+_(rd|wr)_bytes")
DISK_METRICS = {"rd": "disk_read", "wr": "disk_write"}


def bytes_moved(
    kernel_id: str, node_id: str, links: Mapping[str, LinkEnds], stats: SimulationStats
) -> list[MetricSample]:
    """Return the byte counters of a node. Counters that CML does not report have no sample."""
    totals: dict[str, float] = {}
    node = stats.nodes.get(node_id)
    for name, value in (node.figures if node else {}).items():
        if (match := DISK.fullmatch(name)) and value >= 0:
            metric = DISK_METRICS[match[1]]
            totals[metric] = totals.get(metric, 0.0) + value
    for link_id, ends in links.items():
        counters = stats.links.get(link_id, {})
        for metric, name in _directions(node_id, ends).items():
            if counters.get(name, -1) >= 0:
                totals[metric] = totals.get(metric, 0.0) + counters[name]
    return [MetricSample(kernel_id, metric, TOTAL, value) for metric, value in totals.items()]


def _directions(node_id: str, ends: LinkEnds) -> dict[str, str]:
    """Map metrics to CML's counters, which count from a link's first end. A loop on one node is ignored."""
    if ends.a == ends.b:
        return {}
    if node_id == ends.a:
        return {"net_rx": "readbytes", "net_tx": "writebytes"}
    if node_id == ends.b:
        return {"net_rx": "writebytes", "net_tx": "readbytes"}
    return {}


logger = logging.getLogger(__name__)

LABS_AT_ONCE = 16


class LabStatistics:
    """Reads usage from CML. `reconcile` is called with the id of each session whose lab is missing."""

    def __init__(self, context: StageContext, leases: PoolLeases, reconcile: Callable[[str], None]) -> None:
        self._context = context
        self._leases = leases
        self._reconcile = reconcile
        self._semaphore = asyncio.Semaphore(LABS_AT_ONCE)

    async def read(self) -> None:
        """Update the metrics of every running lab and drop the metrics of ended sessions."""
        running = [
            session
            for session in self._context.inventory.sessions.values()
            if session.status in HAS_A_LAB and self._leases.is_ours(session.pool)
        ]
        self._context.metrics.utilization.keep_only(session.id for session in running)
        await asyncio.gather(*(self._lab(session) for session in running))

    async def _lab(self, session: Session) -> None:
        places = self._context.parts_on_workers(session)
        if places is None:
            return
        async with self._semaphore:
            try:
                samples = [sample for place in places for sample in await self._samples(session, place)]
            except CmlNotFound:
                self._reconcile(session.id)
                samples = []
            except CmlError as error:
                logger.info("no usage for session %s: %s", session.short_id, error)
                samples = []
        if session.id in self._context.inventory.sessions:
            self._context.metrics.utilization.put(session.id, samples, self._context.now().timestamp())

    async def _samples(self, session: Session, place: PartOnWorker) -> list[MetricSample]:
        state, worker = self._context.state_of(session).on(place), place.worker
        lab_id = state.lab_id or await self._context.lab_of(session, place)
        if lab_id is None:
            return []
        if state.nodes is None:
            state.nodes = await worker.cml.nodes(lab_id)
            state.links = await self._links(session, worker, lab_id)
        stats = await worker.cml.get_lab_simulation_stats(lab_id)
        return _samples(session, state.nodes, state.links, stats)

    async def _links(self, session: Session, worker: ManagedWorker, lab_id: str) -> Mapping[str, LinkEnds]:
        """Return the ends of each link. If CML cannot list them, only the network metrics are missing."""
        try:
            return await worker.cml.link_ends(lab_id)
        except CmlNotFound:
            raise
        except CmlError as error:
            logger.info("no network usage for session %s: %s", session.short_id, error)
            return {}


def _samples(
    session: Session, nodes: Entries[CmlNode], links: Mapping[str, LinkEnds], stats: SimulationStats
) -> list[MetricSample]:
    samples: list[MetricSample] = []
    for node in nodes.items:
        if kernel_id := session.kernels.get(node.label):
            observation = observe_node(node, stats.nodes.get(node.id), ports={}, interfaces=None)
            samples += samples_of(kernel_id, observation)
            samples += bytes_moved(kernel_id, node.id, links, stats)
    return samples
