"""Health probe of a CML worker."""

from __future__ import annotations

import json
import os
import ssl
import time
from functools import lru_cache
from typing import Any

import httpx

from scheduling.capacity.runtimes.base import Health

PATH = "/api/v0/system_information"
TIMEOUT = 5.0
MAX_RESPONSE_BYTES = 64 * 1024


def probe_cml(endpoint: str, ca: str = "", *, timeout: float = TIMEOUT) -> Health:
    """Return whether the CML at this address is ready; a failure of any kind is returned as a reason.

    TLS is verified with the given certificate file, otherwise with the system's. The proxy settings of the
    environment are not used: LCM connects to workers directly.
    """
    if not endpoint:
        return Health(False, "The worker has no address yet.")
    try:
        body = _get(f"{endpoint.rstrip('/')}{PATH}", _tls(endpoint, ca), timeout)
    except _Unhealthy as error:
        return Health(False, f"{error}")
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return Health(False, f"{endpoint} cannot be probed: {error or type(error).__name__}"[:500])
    return _health(endpoint, body)


class _Unhealthy(Exception):
    """A response that shows that the worker is unhealthy."""


def _tls(endpoint: str, ca: str) -> ssl.SSLContext | bool:
    if not endpoint.startswith("https"):
        return False
    return _context(ca, os.stat(ca).st_mtime_ns if ca else 0)


@lru_cache(maxsize=64)
def _context(ca: str, changed: int) -> ssl.SSLContext:
    """Return a cached TLS context, since loading certificates is slow; a changed file is loaded again."""
    return ssl.create_default_context(cafile=ca or None)


def _get(url: str, verify: ssl.SSLContext | bool, timeout: float) -> bytes:
    """Return the response body, with limits on time and size."""
    deadline = time.monotonic() + timeout
    body = b""
    with (
        httpx.Client(verify=verify, timeout=timeout, trust_env=False) as client,
        client.stream("GET", url) as response,
    ):
        if response.status_code != httpx.codes.OK:
            raise _Unhealthy(f"{url} responds with status {response.status_code}.")
        for part in response.iter_bytes():
            body += part
            if len(body) > MAX_RESPONSE_BYTES:
                raise _Unhealthy(f"{url} responds with more than {MAX_RESPONSE_BYTES} bytes.")
            if time.monotonic() > deadline:
                raise _Unhealthy(f"{url} does not respond within {timeout:g} s.")
    return body


def _health(endpoint: str, body: bytes) -> Health:
    try:
        information: Any = json.loads(body)
    except (ValueError, RecursionError):
        return Health(False, f"{endpoint} does not return JSON.")
    version = information.get("version") if isinstance(information, dict) else None
    if not isinstance(version, str) or "ready" not in information:
        return Health(False, f"{endpoint} does not respond as CML does.")
    ready = information["ready"] is True
    return Health(ready, "" if ready else "CML reports that it is not ready.", version[:60])
