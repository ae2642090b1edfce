"""One HTTP exchange with a worker: bounded in time and size, with every failure raised as a CmlError."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import httpx

from lcm.cml.client.endpoint import CmlEndpoint
from lcm.cml.client.errors import CmlMalformedResponse, CmlTimeout, CmlUnreachable
from lcm.cml.json_values import NotJson, as_mapping, as_text, parse_json

MAX_BODY = 16 * 1024 * 1024
MAX_ERROR_BODY = 64 * 1024
LIMITS = httpx.Limits(max_connections=8, max_keepalive_connections=8, keepalive_expiry=30)


@dataclass(frozen=True)
class Call:
    """An API call: its name in errors and metrics, and its request."""

    name: str
    method: str
    path: str
    params: dict[str, str] | None = None
    json: object = None
    content: bytes | None = None
    idempotent: bool = True
    authenticated: bool = True


@dataclass(frozen=True)
class CmlResponse:
    """Status, body and Retry-After of a response."""

    status: int
    body: bytes
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def description(self) -> str:
        """Return CML's description from its {code, description}, or else the response text."""
        try:
            description = as_mapping(parse_json(self.body)).get("description")
        except NotJson:
            description = None
        text = as_text(description) or self.body[:300].decode("utf-8", "replace").strip()
        return text or "no description"


class Transport:
    """The HTTP connections to one worker."""

    def __init__(self, worker: CmlEndpoint, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.worker = worker
        self._given = transport
        self._opened: httpx.AsyncClient | None = None
        self._is_closed = False
        self._in_progress = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def _http(self) -> httpx.AsyncClient:
        """Create the client on first use: a missing certificate file fails that call, not the constructor."""
        if self._opened is None:
            self._opened = httpx.AsyncClient(
                base_url=self.worker.api_url,
                verify=self.worker.tls() if self._given is None else True,
                transport=self._given,
                timeout=None,  # noqa: S113 - every exchange has its own deadline
                trust_env=False,
                limits=LIMITS,
                headers={"Accept": "application/json"},
            )
        return self._opened

    async def aclose(self) -> None:
        """Reject new calls, wait for calls in progress, which have a deadline, and close."""
        self._is_closed = True
        await self._idle.wait()
        if self._opened is not None:
            await self._opened.aclose()

    async def exchange(self, call: Call, *, token: str | None, seconds: float) -> CmlResponse:
        """Send a call and return its response. Raises CmlError if there is none."""
        if self._is_closed:
            raise CmlUnreachable(self.worker.name, call.name, "the client of this worker is closed")
        self._in_progress += 1
        self._idle.clear()
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(call, token)
        except TimeoutError:
            raise CmlTimeout(self.worker.name, call.name, f"no response within {seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            reason = str(error) or type(error).__name__
            raise CmlUnreachable(self.worker.name, call.name, reason) from error
        finally:
            self._in_progress -= 1
            if not self._in_progress:
                self._idle.set()

    async def _exchange(self, call: Call, token: str | None) -> CmlResponse:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self._http().stream(
            call.method, call.path, params=call.params, json=call.json, content=call.content, headers=headers
        ) as response:
            return CmlResponse(response.status_code, await self._read(response, call), _retry_after(response))

    async def _read(self, response: httpx.Response, call: Call) -> bytes:
        """Return the body, or the start of the body of an error."""
        limit = MAX_BODY if response.is_success else MAX_ERROR_BODY
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > limit and response.is_success:
                description = f"the response is longer than {limit // 1024**2} MB"
                raise CmlMalformedResponse(self.worker.name, call.name, description, response.status_code)
            if len(body) > limit:
                break
        return bytes(body)


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else None
