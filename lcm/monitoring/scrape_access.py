"""Access to metrics: requests need METRICS_TOKEN or, if none is set, must come from this machine."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from django.conf import settings

LOCAL_ONLY = (
    "Without METRICS_TOKEN, only direct requests from this machine can read metrics. "
    "Set METRICS_TOKEN and send it as a bearer token.\n"
)
TOKEN_MISSING = "Send METRICS_TOKEN as a bearer token.\n"  # noqa: S105  (a message)
# Headers that proxies add. A local proxy forwards requests from other machines.
_FORWARDED = ("HTTP_FORWARDED", "HTTP_X_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA")


def scrape_refusal(meta: Mapping[str, Any]) -> tuple[HTTPStatus, str] | None:
    """Return the status and message for a request that may not read metrics, else None."""
    token = settings.METRICS_TOKEN
    if not token:
        return None if _is_direct_and_local(meta) else (HTTPStatus.FORBIDDEN, LOCAL_ONLY)
    given = str(meta.get("HTTP_AUTHORIZATION", ""))
    is_sent = hmac.compare_digest(given.encode(), f"Bearer {token}".encode())
    return None if is_sent else (HTTPStatus.UNAUTHORIZED, TOKEN_MISSING)


def _is_direct_and_local(meta: Mapping[str, Any]) -> bool:
    """Whether client and Host are loopback; a proxy that adds no header still forwards the public Host."""
    host = str(meta.get("HTTP_HOST", "localhost"))
    name = host.partition("]")[0].strip("[") if host.startswith("[") else host.partition(":")[0]
    is_forwarded = any(header.startswith(_FORWARDED) for header in meta)
    is_local_name = name == "localhost" or is_loopback(name)
    return is_local_name and not is_forwarded and is_loopback(str(meta.get("REMOTE_ADDR", "")))


def is_loopback(text: str) -> bool:
    """Return whether a text is a loopback address: IPv4, IPv6 or IPv4-mapped."""
    address = ip_address_in(text)
    return address is not None and address.is_loopback


def ip_address_in(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address, IPv4-mapped as IPv4; return None for any other text."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
