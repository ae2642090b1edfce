"""Comparison and checks of worker addresses and of LCM's own."""

from __future__ import annotations

from urllib.parse import urlsplit

from lcm.monitoring.scrape_access import ip_address_in

PORTS = {"http": 80, "https": 443}


def normalized_address(address: str) -> str:
    """Return a canonical form: equal for addresses of the same worker."""
    try:
        parts = urlsplit(address)
        port = parts.port or PORTS.get(parts.scheme.lower(), 0)
    except ValueError:
        return address.lower().rstrip("/")
    return f"{(parts.hostname or '').rstrip('.')}:{port}{parts.path.rstrip('/')}"


def is_reachable_from_other_hosts(address: str) -> bool:
    """Return whether other hosts can use this address; False for addresses of the local machine only."""
    try:
        host = (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return False
    if not host or host == "localhost" or host.endswith(".localhost"):
        return False
    ip = ip_address_in(host)
    return ip is None or not (ip.is_loopback or ip.is_unspecified)
