"""Prometheus' HTTP API, as far as it is asked here."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from observations.livestats.answers import Answer, PrometheusError, read_answer, refusal
from observations.livestats.options import Options

# Prometheus works on 20 queries at a time if it is not told otherwise.
AT_ONCE = 16
LARGEST_ANSWER = 32 * 1024 * 1024


class PrometheusClient:
    """Raises PrometheusError, nothing else. Every query has one deadline, however slowly the answer drips."""

    def __init__(self, options: Options, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._seconds = options.timeout
        self._status_file = options.status_file
        headers = {"Authorization": f"Bearer {options.token}"} if options.token else {}
        self._http = httpx.AsyncClient(
            base_url=f"{options.url}/api/v1/",
            headers=headers,
            auth=httpx.BasicAuth(options.user, options.password) if options.user else None,
            verify=_trust(options.ca_file, options.client_certificate, options.client_key),
            timeout=options.timeout,
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

    async def query(self, promql: str) -> Answer:
        """The value of an expression now."""
        return await self._ask("query", {"query": promql})

    async def query_range(self, promql: str, *, start: float, end: float, step: float) -> Answer:
        """The values of an expression over time; moments and step in seconds."""
        times = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        return await self._ask("query_range", {"query": promql, **times})

    async def _ask(self, path: str, form: Mapping[str, str]) -> Answer:
        async with self._gate:
            try:
                async with asyncio.timeout(self._seconds):
                    status, content = await self._post(path, form)
            except TimeoutError:
                raise PrometheusError(f"it did not answer within {self._seconds:g} s") from None
            except httpx.ConnectError as error:
                raise PrometheusError(_status(self._status_file) or str(error)) from error
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise PrometheusError(str(error) or type(error).__name__) from error
        body = _json(content)
        if status != httpx.codes.OK:
            raise PrometheusError(f"it answered {status} {refusal(body)}".strip())
        if body is None:
            raise PrometheusError("its answer is not JSON")
        return read_answer(body)

    async def _post(self, path: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        async with self._http.stream("POST", path, data=dict(form)) as response:
            parts, size = [], 0
            async for part in response.aiter_bytes():
                size += len(part)
                if size > LARGEST_ANSWER:
                    raise PrometheusError(f"its answer is larger than {LARGEST_ANSWER // 2**20} MB")
                parts.append(part)
            return response.status_code, b"".join(parts)


def _status(file: str) -> str:
    """Return what `manage.py up` says about its own Prometheus while that does not run."""
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
    """Whom to trust and who we are; reading the system's list of authorities takes a while."""
    context = ssl.create_default_context(cafile=ca_file or None)
    if certificate:
        context.load_cert_chain(certificate, key)
    return context
