"""Requests to CML: token, renewed log-in and retries."""

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
    """Timeouts of one exchange and of a whole call, and the retry backoff."""

    exchange_seconds: float = 10.0
    call_seconds: float = 30.0
    attempts: int = 3
    first_pause: float = 0.25
    longest_pause: float = 5.0
    draw: Callable[[], float] = field(default=random.random, repr=False)

    def pause(self, attempt: int, retry_after: float | None = None) -> float:
        """Return seconds until the next attempt: exponential, with jitter, and at least `retry_after`."""
        grown = self.first_pause * 2.0**attempt * (0.5 + self.draw())
        return min(max(grown, retry_after or 0.0), self.longest_pause)


@dataclass(frozen=True)
class CallRecord:
    """One HTTP exchange, for metrics. `result` is the status code or the error class."""

    worker: str
    call: str
    result: str
    seconds: float


class Caller:
    """Sends the calls of one worker, and keeps the token until CML rejects it."""

    def __init__(
        self, transport: Transport, retry_policy: RetryPolicy, on_call: Callable[[CallRecord], None] | None
    ) -> None:
        self.transport = transport
        self.worker = transport.worker
        self.retry_policy = retry_policy
        self._on_call = on_call
        self._token: str | None = None
        self._login = asyncio.Lock()

    async def aclose(self) -> None:
        await self.transport.aclose()

    async def execute(self, call: Call) -> None:
        """Send a call and discard the response body. Raises CmlError unless it succeeds."""
        self._check(call, await self._request(call))

    async def send(self, call: Call) -> object:
        """Return the JSON of the response, or None without a body. Raises CmlError unless it succeeds."""
        return self._value(call, await self._request(call))

    async def _request(self, call: Call) -> CmlResponse:
        deadline = time.monotonic() + self.retry_policy.call_seconds
        token = None
        if call.authenticated:
            token = self._token or await self._fresh_token(None, deadline)
        response = await self._try(call, token, deadline)
        if response.status == UNAUTHORIZED and call.authenticated:
            response = await self._try(call, await self._fresh_token(token, deadline), deadline)
            if response.status == UNAUTHORIZED:
                raise CmlAuthFailed(self.worker.name, call.name, response.description(), response.status)
        return response

    async def _fresh_token(self, refused: str | None, deadline: float) -> str:
        """Log in, once for all calls that wait for a token."""
        async with self._login:
            if self._token is None or self._token == refused:
                self._token = None
                self._token = await self._authenticate(deadline)
            return self._token

    async def _authenticate(self, deadline: float) -> str:
        credentials = {"username": self.worker.username, "password": self.worker.password}
        call = Call("authenticate", "POST", "authenticate", json=credentials, authenticated=False)
        response = await self._try(call, None, deadline)
        if response.status in (UNAUTHORIZED, FORBIDDEN):
            raise CmlAuthFailed(self.worker.name, call.name, response.description(), response.status)
        token = as_text(self._value(call, response), limit=16_384)
        if not token or not token.isascii() or not token.isprintable():
            raise CmlMalformedResponse(self.worker.name, call.name, "the response is not a token")
        return token

    async def _try(self, call: Call, token: str | None, deadline: float) -> CmlResponse:
        """Send a call, and retry transient failures until the deadline if the call is idempotent."""
        attempts = self.retry_policy.attempts if call.idempotent else 1
        for attempt in range(attempts):
            seconds = min(self.retry_policy.exchange_seconds, max(deadline - time.monotonic(), 0.001))
            retry_after = None
            try:
                response = await self._exchange(call, token, seconds)
            except CmlUnreachable:
                if self._is_last(attempt, attempts, deadline):
                    raise
            else:
                if response.status not in RETRYABLE_STATUSES or self._is_last(attempt, attempts, deadline):
                    return response
                retry_after = response.retry_after
            await asyncio.sleep(
                min(self.retry_policy.pause(attempt, retry_after), max(deadline - time.monotonic(), 0))
            )
        raise AssertionError("a call is attempted at least once")

    def _is_last(self, attempt: int, attempts: int, deadline: float) -> bool:
        return attempt + 1 >= attempts or time.monotonic() >= deadline

    async def _exchange(self, call: Call, token: str | None, seconds: float) -> CmlResponse:
        started = time.monotonic()
        result = "cancelled"
        try:
            response = await self.transport.exchange(call, token=token, seconds=seconds)
            result = str(response.status)
        except CmlError as error:
            result = type(error).__name__
            raise
        finally:
            if self._on_call:
                record = CallRecord(self.worker.name, call.name, result, time.monotonic() - started)
                self._on_call(record)
        return response

    def _check(self, call: Call, response: CmlResponse) -> None:
        if not response.ok:
            error = error_class(response.status)
            raise error(self.worker.name, call.name, response.description(), response.status)

    def _value(self, call: Call, response: CmlResponse) -> object:
        self._check(call, response)
        if not response.body.strip():
            return None
        try:
            return parse_json(response.body)
        except NotJson as error:
            description = f"the response is not JSON: {error}"
            raise CmlMalformedResponse(self.worker.name, call.name, description, response.status) from None
