"""Local copy of LCM's sessions and slots, with a client per worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable

from lcm.cml.client.caller import CallRecord
from lcm.controller.config import Config
from lcm.controller.model import ON_A_SLOT, SERVING, Session, SlotInfo
from lcm.controller.worker import ManagedWorker

logger = logging.getLogger(__name__)


class Inventory:
    """Sessions and slots by id. `on_change` is called with the id of each session to reconcile."""

    def __init__(self, config: Config, on_change: Callable[[str], None]) -> None:
        self.sessions: dict[str, Session] = {}
        self.slots: dict[str, SlotInfo] = {}
        self.on_call: Callable[[CallRecord], None] | None = None
        self._config = config
        self._on_change = on_change
        self._workers: dict[str, ManagedWorker] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.is_known = False

    def replace_all(self, sessions: Iterable[Session], slots: Iterable[SlotInfo]) -> None:
        """Replace all sessions and slots."""
        self.replace_slots(slots)
        new = {session.id: session for session in sessions}
        removed = set(self.sessions) - set(new)
        self.sessions = new
        self.is_known = True
        for key in (*new, *removed):
            self._on_change(key)

    def replace_slots(self, slots: Iterable[SlotInfo]) -> None:
        self.slots = {slot.id: slot for slot in slots if slot.state in SERVING}
        for key, worker in list(self._workers.items()):
            slot = self.slots.get(key)
            if slot is None or slot.endpoint != worker.slot.endpoint:
                self._close(self._workers.pop(key))

    def put(self, session: Session) -> None:
        """Store a session as LCM has it now, or drop it if it no longer has a slot."""
        known = self.sessions.get(session.id)
        if session.status in ON_A_SLOT and session.slot_id:
            self.sessions[session.id] = session
        else:
            self.sessions.pop(session.id, None)
        if known != session:
            self._on_change(session.id)

    def forget(self, session_id: str) -> None:
        if self.sessions.pop(session_id, None):
            self._on_change(session_id)

    def sessions_on(self, slot_id: str) -> list[Session]:
        return [session for session in self.sessions.values() if session.is_on(slot_id)]

    def worker(self, slot_id: str | None) -> ManagedWorker | None:
        """Return the worker of a slot, or None if the slot is not in service."""
        slot = self.slots.get(slot_id or "")
        if slot is None:
            return None
        if slot.id not in self._workers:
            try:
                self._workers[slot.id] = ManagedWorker(slot, self._config, self.on_call)
            except ValueError as error:
                logger.error("the worker of %s is not usable: %s", slot.name, error)
                return None
        return self._workers[slot.id]

    def workers_of(self, pools: Container[str]) -> list[ManagedWorker]:
        """Return the workers in service in these pools."""
        keys = [slot.id for slot in self.slots.values() if slot.pool in pools]
        return [worker for key in keys if (worker := self.worker(key)) is not None]

    async def aclose(self) -> None:
        await asyncio.gather(*(worker.aclose() for worker in self._workers.values()), *self._closing)

    def _close(self, worker: ManagedWorker) -> None:
        task = asyncio.create_task(worker.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
