"""One CML worker: its client, its labs, and a lock for operations that CML cannot run in parallel."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from lcm.cml.client.caller import RETRYABLE_STATUSES, CallRecord, RetryPolicy
from lcm.cml.client.client import CmlClient
from lcm.cml.client.endpoint import CmlEndpoint as CmlWorker
from lcm.cml.client.errors import CmlError, CmlMalformedResponse, CmlNotFound, CmlRejected, CmlUnreachable
from lcm.cml.client.results import CmlLab
from lcm.controller.config import Config
from lcm.controller.lab_titles import LabOwner, parse_title
from lcm.controller.model import SlotInfo

STARTED = "STARTED"
# A STOPPED lab can be wiped; a DEFINED_ON_CORE lab can be deleted.
STOPPED = "STOPPED"
DEFINED = "DEFINED_ON_CORE"
RETRY_POLICY = RetryPolicy(exchange_seconds=10, call_seconds=20, attempts=2)
DETAILS_AT_ONCE = 8
# Statuses of a reverse proxy whose upstream CML has not responded.
PROXY_ERRORS = (502, 504)
TEARDOWN_POLL = 0.5
TEARDOWN_POLLS = 60


@dataclass(frozen=True)
class LabOnWorker:
    id: str
    title: str
    owner: LabOwner | None
    created: str


class ManagedWorker:
    """`changing` serializes import, start and delete, which CML runs one at a time."""

    def __init__(
        self, slot: SlotInfo, config: Config, on_call: Callable[[CallRecord], None] | None = None
    ) -> None:
        credentials = config.credentials_for(slot.name, slot.pool)
        self.slot = slot
        self.cml = CmlClient(
            CmlWorker(
                name=slot.name,
                url=slot.endpoint,
                username=credentials.username,
                password=credentials.secret(),
                ca_file=credentials.ca_file or None,
                fingerprint=credentials.fingerprint or None,
            ),
            retry_policy=RETRY_POLICY,
            on_call=self._record_call,
        )
        self.changing = asyncio.Lock()
        self._lab_requests = asyncio.Semaphore(DETAILS_AT_ONCE)
        self.unreachable_since: float | None = None
        self._on_call = on_call
        self._labs: dict[str, LabOnWorker] = {}

    async def aclose(self) -> None:
        await self.cml.aclose()

    def unreachable_for(self) -> float:
        """Return for how many seconds every call has failed."""
        return 0.0 if self.unreachable_since is None else time.monotonic() - self.unreachable_since

    def _record_call(self, record: CallRecord) -> None:
        if record.result.isdigit():
            self.unreachable_since = None
        elif self.unreachable_since is None and record.result != "cancelled":
            self.unreachable_since = time.monotonic()
        if self._on_call:
            self._on_call(record)

    async def labs(self) -> list[LabOnWorker]:
        """Return all labs on the worker. The title of each lab is requested once."""
        if read_error := await self._read_labs():
            raise read_error
        return list(self._labs.values())

    async def _read_labs(self) -> CmlMalformedResponse | None:
        """Update the list of labs. Return the error if the title of a lab could not be read."""
        known = set(self._labs)
        ids = await self.cml.labs()
        for lab_id in known.difference(ids):
            self._labs.pop(lab_id, None)
        unknown = [key for key in ids if key not in self._labs]
        read_error = None
        for lab in await asyncio.gather(*map(self._fetch_lab, unknown)):
            if isinstance(lab, CmlMalformedResponse):
                read_error = lab
            elif lab is not None:
                owner = parse_title(lab.title)
                self._labs[lab.id] = LabOnWorker(lab.id, lab.title, owner, lab.created or "")
        return read_error

    async def _fetch_lab(self, lab_id: str) -> CmlLab | CmlMalformedResponse | None:
        async with self._lab_requests:
            try:
                return await self.cml.lab(lab_id)
            except CmlNotFound:
                return None
            except CmlMalformedResponse as error:
                return error

    async def labs_of(self, owner: LabOwner) -> list[LabOnWorker]:
        """Return the labs with an owner mark, oldest first; several if an import timed out and was repeated.

        An empty result is certain: a lab with an unreadable title raises its error instead.
        """
        read_error = await self._read_labs()
        labs = [lab for lab in self._labs.values() if lab.owner == owner]
        if read_error and not labs:
            raise read_error
        return sorted(labs, key=lambda lab: (lab.created, lab.id))

    async def import_lab(self, topology: str, title: str) -> str:
        async with self.changing:
            lab_id = await self.cml.import_lab(topology, title=title)
        self._labs[lab_id] = LabOnWorker(lab_id, title, parse_title(title), created="")
        return lab_id

    async def start(self, lab_id: str) -> None:
        async with self.changing:
            await self.cml.start_lab(lab_id)

    async def remove(self, lab_id: str) -> None:
        """Stop, wipe and delete a lab in any state. A missing lab is not an error."""
        try:
            async with self.changing:
                await self.cml.stop_lab(lab_id)
            await self._until_stopped(lab_id)
            async with self.changing:
                await self.cml.wipe_lab(lab_id)
                await self.cml.delete_lab(lab_id)
        except CmlNotFound:
            pass
        self._labs.pop(lab_id, None)

    async def _until_stopped(self, lab_id: str) -> None:
        for _ in range(TEARDOWN_POLLS):
            if await self.cml.lab_state(lab_id) in (STOPPED, DEFINED):
                return
            await asyncio.sleep(TEARDOWN_POLL)


def is_retryable(error: CmlError) -> bool:
    """Return whether a retry may succeed: any error except a rejection by CML."""
    return not isinstance(error, CmlRejected) or error.status in RETRYABLE_STATUSES


def has_unknown_result(error: CmlError) -> bool:
    """Return whether CML may have carried out the request although no response arrived."""
    return isinstance(error, CmlUnreachable) or error.status in PROXY_ERRORS
