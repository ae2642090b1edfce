"""Client for the parts of the Prometheus HTTP API that LCM uses."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from observations.livestats.outages import end_outage, note_outage, skip_reason
from observations.livestats.prometheus_settings import PrometheusSettings
from observations.livestats.responses import PrometheusError, QueryResult, error_message, parse_response

# Prometheus runs 20 queries concurrently by default.
AT_ONCE = 16
# A connection that fails after this time is treated like a hanging one.
SLOW_SECONDS = 1.0
MAX_RESPONSE_BYTES = 32 * 1024 * 1024


class PrometheusClient:
    """Prometheus client that raises only PrometheusError; every query has one total deadline.

    If Prometheus is slow and responds to none of a client's queries, all clients skip it for a while. A range
    query may be slow by itself, so only its connection shows whether Prometheus is available.
    """

    def __init__(
        self, options: PrometheusSettings, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._options = options
        self._skipped = skip_reason(options)
        self._responded = False
        headers = {"Authorization": f"Bearer {options.token}"} if options.token else {}
        self._http = httpx.AsyncClient(
            base_url=f"{options.url}/api/v1/",
            headers=headers,
            auth=httpx.BasicAuth(options.user, options.password) if options.user else None,
            verify=_trust(options.ca_file, options.client_certificate, options.client_key),
            # The connect timeout is shorter, so that a hanging connection differs from a slow query.
            timeout=httpx.Timeout(options.timeout, connect=0.9 * options.timeout),
            limits=httpx.Limits(max_connections=AT_ONCE),
            transport=transport,
            trust_env=False,
        )
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def query(self, promql: str) -> QueryResult:
        """Return the current value of an expression."""
        return await self._send("query", {"query": promql})

    async def query_range(self, promql: str, *, start: float, end: float, step: float) -> QueryResult:
        """Return the values of an expression over time; times and step in seconds."""
        times = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        return await self._send("query_range", {"query": promql, **times})

    async def _send(self, path: str, form: Mapping[str, str]) -> QueryResult:
        async with self._gate:
            if self._skipped and not self._responded:
                raise PrometheusError(self._skipped)
            begun = time.monotonic()
            try:
                async with asyncio.timeout(self._options.timeout):
                    status, content = await self._post(path, form)
            except (TimeoutError, httpx.TimeoutException) as error:
                problem = f"no response within {self._options.timeout:g} s"
                is_outage = path == "query" or isinstance(error, httpx.ConnectTimeout)
                self._note_failure(problem, is_outage=is_outage)
                raise PrometheusError(problem) from None
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                is_away = isinstance(error, httpx.ConnectError)
                problem = (
                    (is_away and _status(self._options.status_file)) or str(error) or type(error).__name__
                )
                # A refused connection is cheap, so Prometheus is queried again as soon as it is back.
                if time.monotonic() - begun >= SLOW_SECONDS:
                    self._note_failure(problem, is_outage=path == "query" or is_away)
                else:
                    end_outage(self._options)
                raise PrometheusError(problem) from error
            self._note_response()
        body = _json(content)
        if status != httpx.codes.OK:
            raise PrometheusError(f"HTTP {status} {error_message(body)}".strip())
        if body is None:
            raise PrometheusError("the response is not JSON")
        return parse_response(body)

    def _note_failure(self, problem: str, *, is_outage: bool) -> None:
        """Skip the client's other queries, and Prometheus for all clients if this is an outage.

        If another query succeeded, Prometheus is available and only this query is slow.
        """
        if not self._responded and not self._skipped:
            self._skipped = problem
            if is_outage:
                note_outage(self._options, problem)

    def _note_response(self) -> None:
        if not self._responded:
            self._responded = True
            end_outage(self._options)

    async def _post(self, path: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        async with self._http.stream("POST", path, data=dict(form)) as response:
            parts, size = [], 0
            async for part in response.aiter_bytes():
                size += len(part)
                if size > MAX_RESPONSE_BYTES:
                    raise PrometheusError(f"the response is larger than {MAX_RESPONSE_BYTES // 2**20} MB")
                parts.append(part)
            return response.status_code, b"".join(parts)


def _status(file: str) -> str:
    """Return the status that `manage.py up` reports for its own Prometheus while that is not running."""
    try:
        return Path(file).read_text() if file else ""
    except OSError:
        return ""


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


@lru_cache(maxsize=4)
def _trust(ca_file: str, certificate: str, key: str) -> ssl.SSLContext:
    """Return the TLS context; cached, because loading the system's certificate authorities is slow."""
    context = ssl.create_default_context(cafile=ca_file or None)
    if certificate:
        context.load_cert_chain(certificate, key)
    return context
