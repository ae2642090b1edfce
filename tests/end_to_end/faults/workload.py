"""Clients that request, extend, cancel and observe sessions, and keep a ledger of acknowledged requests."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from tests.end_to_end.faults.bootstrap import Known
from tests.end_to_end.faults.ledger import Entry, Ledger

RETRY_SECONDS = 45.0
TIMEOUT = httpx.Timeout(10)


@dataclass(frozen=True)
class Pace:
    """Length of timeslots and maximum number of concurrent sessions."""

    shortest: float
    longest: float
    extension: float
    sessions: int


class Clients:
    """Each client takes one session from request to end, then the next."""

    def __init__(
        self,
        ports: Callable[[], list[int]],
        known: Known,
        ledger: Ledger,
        pace: Pace,
        rng: random.Random,
        say: Callable[[str], None],
    ) -> None:
        self._say = say
        self._ports, self._known, self._ledger, self._pace, self._rng = ports, known, ledger, pace, rng
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        headers = {"Authorization": f"Bearer {self._known.person}"}
        async with httpx.AsyncClient(headers=headers, timeout=TIMEOUT) as self._http:
            await asyncio.gather(*(self._client(number) for number in range(self._pace.sessions)))

    def stop(self) -> None:
        """Start no more sessions; sessions in progress are still extended and cancelled."""
        self._stopping.set()

    async def _client(self, number: int) -> None:
        await self._pause(number * self._pace.shortest / self._pace.sessions)
        while not self._stopping.is_set():
            await self._session()
            await self._pause(self._rng.uniform(0, 5))

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    async def _session(self) -> None:
        arrives = self._rng.random() < 0.2
        ends_at = time.time() + self._rng.uniform(self._pace.shortest, self._pace.longest)
        body = {
            "definition": self._known.arrival if arrives else self._known.definition,
            "project": self._known.project,
            "ends_at": _moment(ends_at),
        }
        created = await self._post("request", "lablet-sessions/", body)
        if created is None:
            return
        entry = Entry(str(created["id"]), time.time(), ends_at)
        self._ledger.entries[entry.session_id] = entry
        plan = self._rng.choices(("leave", "extend", "cancel", "observe"), (3, 4, 2, 1))[0]
        if arrives:
            await self._sleep_until(time.time() + self._rng.uniform(2, 10))
            await self._post("arrive", f"lablet-sessions/{entry.session_id}/arrive", {})
        if plan == "extend":
            await self._extend(entry)
        elif plan == "cancel":
            await self._cancel(entry)
        elif plan == "observe":
            await self._sleep_until(self._rng.uniform(time.time(), ends_at))
            await self._post("observe", f"lablet-sessions/{entry.session_id}/observe-resources", {})
        await self._sleep_until(entry.promised_end)

    async def _extend(self, entry: Entry) -> None:
        """Extend up to three times: early, or in the last seconds, when the controller ends the lab."""
        for _ in range(self._rng.randint(1, 3)):
            end = entry.promised_end
            late = self._rng.random() < 0.7
            await self._sleep_until(
                self._rng.uniform(end - 3, end + 1.5) if late else end - self._rng.uniform(3, 15)
            )
            new = max(end, time.time()) + self._rng.uniform(5, self._pace.extension)
            path = f"lablet-sessions/{entry.session_id}/extend"
            if await self._post("extend", path, {"ends_at": _moment(new)}) is None:
                return
            entry.extensions.append((time.time(), new))

    async def _cancel(self, entry: Entry) -> None:
        await self._sleep_until(self._rng.uniform(time.time(), entry.ends_at))
        entry.cancel_sent = True
        path = f"lablet-sessions/{entry.session_id}/cancel"
        if await self._post("cancel", path, {"reason": "fault run"}) is not None:
            entry.cancelled_at = time.time()

    async def _sleep_until(self, moment: float) -> None:
        await asyncio.sleep(max(0.0, moment - time.time()))

    async def _post(self, kind: str, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Send with the same key until LCM accepts or rejects; None if it was not accepted."""
        key = str(uuid.UUID(int=self._rng.getrandbits(128)))
        deadline = time.monotonic() + RETRY_SECONDS
        while time.monotonic() < deadline:
            response = await self._try(kind, path, body, key)
            if response is not None and response.is_success:
                created: dict[str, Any] = response.json()
                return created
            if response is not None and response.status_code < 500 and response.status_code != 429:
                return None
            await asyncio.sleep(self._rng.uniform(0.3, 1.5))
        self._ledger.count(f"{kind} given up")
        return None

    async def _try(self, kind: str, path: str, body: dict[str, Any], key: str) -> httpx.Response | None:
        port = self._rng.choice(self._ports())
        start = time.monotonic()
        try:
            response = await self._http.post(
                f"http://127.0.0.1:{port}/api/{path}", json=body, headers={"Idempotency-Key": key}
            )
        except httpx.HTTPError as error:
            self._ledger.count(f"{kind} {type(error).__name__}")
            return None
        self._ledger.count(f"{kind} {response.status_code}")
        self._ledger.time(response.status_code, time.monotonic() - start)
        if response.status_code >= 500 and response.status_code != 503:
            self._ledger.server_errors.append(f"{kind} returned {response.status_code}")
            request_id = response.headers.get("X-Request-ID", "unknown")
            self._say(f"{kind} returned {response.status_code}, request id {request_id}")
        return response


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
