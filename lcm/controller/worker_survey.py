"""Periodic check of whole workers: orphaned and missing labs, leaked ports, and the states of nodes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lcm.cml.client.errors import CmlError, CmlNotFound
from lcm.cml.client.results import CmlNode
from lcm.cml.ports import readable_port
from lcm.controller.heartbeats import HeartbeatSender, SurveyResult
from lcm.controller.lab_titles import LabOwner
from lcm.controller.lcm_client import LcmCallError, LcmClient
from lcm.controller.model import HAS_A_LAB, Session
from lcm.controller.pool_leases import PoolLeases
from lcm.controller.stage_context import StageContext
from lcm.controller.worker import LabOnWorker, ManagedWorker

logger = logging.getLogger(__name__)

WORKERS_AT_ONCE = 8


@dataclass
class WorkerSurvey:
    """`reconcile` is called with the id of each session whose lab is missing."""

    context: StageContext
    leases: PoolLeases
    client: LcmClient
    heartbeats: HeartbeatSender
    reconcile: Callable[[str], None]
    # By slot and lab: the monotonic time at which the lab was first found without a session.
    _orphans: dict[tuple[str, str], float] = field(default_factory=dict)
    _semaphore: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WORKERS_AT_ONCE))

    async def run(self) -> None:
        if self.context.inventory.is_known:
            workers = self.context.inventory.workers_of(self.leases.pools)
            await asyncio.gather(*map(self._worker, workers))

    async def _worker(self, worker: ManagedWorker) -> None:
        async with self._semaphore:
            began = time.monotonic()
            try:
                labs = await worker.labs()
                self._enqueue_missing(worker.slot.id, labs)
                await self._collect_orphans(worker, labs)
                self.heartbeats.survey_results[worker.slot.id] = await self._result(worker, labs, began)
            except CmlError as error:
                logger.info("survey of %s failed: %s", worker.slot.name, error)
            except LcmCallError as error:
                logger.info("orphans on %s are removed later: %s", worker.slot.name, error)

    def _enqueue_missing(self, slot_id: str, labs: list[LabOnWorker]) -> None:
        owners = {lab.owner for lab in labs}
        for session in self.context.inventory.sessions_on(slot_id):
            if session.status in HAS_A_LAB and (session.id, session.attempt) not in owners:
                self.reconcile(session.id)

    async def _collect_orphans(self, worker: ManagedWorker, labs: list[LabOnWorker]) -> None:
        """Remove labs that carry an owner mark but belong to no session, after a grace period."""
        orphans = {lab.id: lab for lab in labs if lab.owner and not self._has_session(worker, lab)}
        for key in [key for key in self._orphans if key[0] == worker.slot.id and key[1] not in orphans]:
            del self._orphans[key]
        for lab in orphans.values():
            since = self._orphans.setdefault((worker.slot.id, lab.id), time.monotonic())
            is_due = time.monotonic() - since >= self.context.config.orphan_grace_seconds
            if is_due and self.leases.may_change(worker.slot.pool) and not await self._is_known(worker, lab):
                logger.warning(
                    "%s: lab %s (%s) has no session and is removed", worker.slot.name, lab.id, lab.title
                )
                await worker.remove(lab.id)
                self.context.metrics.orphans.inc()

    def _has_session(self, worker: ManagedWorker, lab: LabOnWorker) -> bool:
        assert lab.owner is not None
        session = self.context.inventory.sessions.get(lab.owner.session_id)
        return session is not None and _matches(session, worker, lab.owner)

    async def _is_known(self, worker: ManagedWorker, lab: LabOnWorker) -> bool:
        """Return whether LCM has a session for the lab; the local copy may be outdated."""
        assert lab.owner is not None
        sessions = await self.client.sessions([lab.owner.session_id])
        return any(_matches(session, worker, lab.owner) for session in sessions)

    async def _result(self, worker: ManagedWorker, labs: list[LabOnWorker], began: float) -> SurveyResult:
        """Return ports in lab tags that are allocated to no session on this worker, and labs of sessions."""
        allocated = {
            port
            for session in self.context.inventory.sessions_on(worker.slot.id)
            for port in session.allocated_ports.values()
        }
        names: dict[int, str] = {}
        of_sessions: list[dict[str, object]] = []
        for lab in labs:
            try:
                nodes = await worker.cml.nodes(lab.id)
            except CmlNotFound:
                continue
            if lab.owner and self._has_session(worker, lab):
                of_sessions.append(_report(lab, lab.owner, nodes.items))
            for node in nodes.items:
                for tag in node.tags:
                    port = readable_port(tag)
                    if port and port.outside not in allocated:
                        names.setdefault(
                            port.outside, f"{lab.title[:60]} {node.label[:60]} {tag[:60]}".strip()
                        )
        ports = [{"port": port, "name": name} for port, name in sorted(names.items())]
        return SurveyResult(ports, of_sessions, began)


def _report(lab: LabOnWorker, owner: LabOwner, nodes: Sequence[CmlNode]) -> dict[str, object]:
    states = {node.label: node.state[:30] for node in nodes if node.label and node.state}
    return {"session": owner.session_id, "attempt": owner.attempt, "lab": lab.id, "nodes": states}


def _matches(session: Session, worker: ManagedWorker, owner: LabOwner) -> bool:
    return session.attempt == owner.attempt and session.is_on(worker.slot.id)
