"""Sending calls: the token, the one fresh log-in, and patience with what passes."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lcm.cml.client.errors import CmlAuthFailed, CmlError, CmlMalformedResponse, CmlUnreachable, error_class
from lcm.cml.client.transport import Call, CmlResponse, Transport
from lcm.cml.json_values import NotJson, as_text, parse_json

RETRYABLE_STATUSES = frozenset({429, 502, 503})
UNAUTHORIZED = 401
FORBIDDEN = 403


@dataclass(frozen=True)
class RetryPolicy:
    """How long one exchange and a whole call may take, and how often what passes is tried again."""

    exchange_seconds: float = 10.0
    call_seconds: float = 30.0
    attempts: int = 3
    first_pause: float = 0.25
    longest_pause: float = 5.0
    draw: Callable[[], float] = field(default=random.random, repr=False)

    def pause(self, attempt: int, asked: float | None = None) -> float:
        """Seconds until the next try: twice as long each time, spread, at least what CML asked for."""
        grown = self.first_pause * 2.0**attempt * (0.5 + self.draw())
        return min(max(grown, asked or 0.0), self.longest_pause)


@dataclass(frozen=True)
class CallRecord:
    """One HTTP exchange, for metrics; `result` is the status, or the kind of error."""

    worker: str
    call: str
    result: str
    seconds: float


class Caller:
    """Sends the calls of one worker, with a token that is kept until CML refuses it."""

    def __init__(
        self, transport: Transport, patience: RetryPolicy, on_call: Callable[[CallRecord], None] | None
    ) -> None:
        self.transport = transport
        self.worker = transport.worker
        self.patience = patience
        self._on_call = on_call
        self._token: str | None = None
        self._login = asyncio.Lock()

    async def aclose(self) -> None:
        await self.transport.aclose()

    async def execute(self, call: Call) -> None:
        """Send a call of which only the success counts; raises CmlError for anything else."""
        self._check(call, await self._answer(call))

    async def send(self, call: Call) -> object:
        """The JSON of the answer, None without a body; raises CmlError for anything but success."""
        return self._value(call, await self._answer(call))

    async def _answer(self, call: Call) -> CmlResponse:
        deadline = time.monotonic() + self.patience.call_seconds
        token = await self._current_token(deadline) if call.authenticated else None
        answer = await self._try(call, token, deadline)
        if answer.status == UNAUTHORIZED and call.authenticated:
            answer = await self._try(call, await self._fresh_token(token, deadline), deadline)
            if answer.status == UNAUTHORIZED:
                raise CmlAuthFailed(self.worker.name, call.name, answer.description(), answer.status)
        return answer

    async def _current_token(self, deadline: float) -> str:
        return self._token or await self._fresh_token(None, deadline)

    async def _fresh_token(self, refused: str | None, deadline: float) -> str:
        """Log in, once for all calls that wait for it."""
        async with self._login:
            if self._token is None or self._token == refused:
                self._token = None
                self._token = await self._authenticate(deadline)
            return self._token

    async def _authenticate(self, deadline: float) -> str:
        credentials = {"username": self.worker.username, "password": self.worker.password}
        call = Call("authenticate", "POST", "authenticate", json=credentials, authenticated=False)
        answer = await self._try(call, None, deadline)
        if answer.status in (UNAUTHORIZED, FORBIDDEN):
            raise CmlAuthFailed(self.worker.name, call.name, answer.description(), answer.status)
        token = as_text(self._value(call, answer), limit=16_384)
        if not token or not token.isascii() or not token.isprintable():
            raise CmlMalformedResponse(self.worker.name, call.name, "the answer is not a token")
        return token

    async def _try(self, call: Call, token: str | None, deadline: float) -> CmlResponse:
        """Exchange, and once more for what passes, while there is time and the call can be repeated."""
        attempts = self.patience.attempts if call.idempotent else 1
        for attempt in range(attempts):
            seconds = min(self.patience.exchange_seconds, max(deadline - time.monotonic(), 0.001))
            asked = None
            try:
                answer = await self._exchange(call, token, seconds)
            except CmlUnreachable:
                if self._is_last(attempt, attempts, deadline):
                    raise
            else:
                if answer.status not in RETRYABLE_STATUSES or self._is_last(attempt, attempts, deadline):
                    return answer
                asked = answer.retry_after
            await asyncio.sleep(min(self.patience.pause(attempt, asked), max(deadline - time.monotonic(), 0)))
        raise AssertionError("a call is tried at least once")

    def _is_last(self, attempt: int, attempts: int, deadline: float) -> bool:
        return attempt + 1 >= attempts or time.monotonic() >= deadline

    async def _exchange(self, call: Call, token: str | None, seconds: float) -> CmlResponse:
        started = time.monotonic()
        result = "cancelled"
        try:
            answer = await self.transport.exchange(call, token=token, seconds=seconds)
            result = str(answer.status)
        except CmlError as error:
            result = type(error).__name__
            raise
        finally:
            if self._on_call:
                record = CallRecord(self.worker.name, call.name, result, time.monotonic() - started)
                self._on_call(record)
        return answer

    def _check(self, call: Call, answer: CmlResponse) -> None:
        if not answer.ok:
            error = error_class(answer.status)
            raise error(self.worker.name, call.name, answer.description(), answer.status)

    def _value(self, call: Call, answer: CmlResponse) -> object:
        self._check(call, answer)
        if not answer.body.strip():
            return None
        try:
            return parse_json(answer.body)
        except NotJson as error:
            description = f"the answer is not JSON: {error}"
            raise CmlMalformedResponse(self.worker.name, call.name, description, answer.status) from None
