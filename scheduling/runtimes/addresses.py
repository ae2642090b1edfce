"""Addresses of workers, to be compared."""

from __future__ import annotations

from urllib.parse import urlsplit

PORTS = {"http": 80, "https": 443}


def same_place(address: str) -> str:
    """Equal for addresses that lead to the same worker, however they are written."""
    try:
        parts = urlsplit(address)
        port = parts.port or PORTS.get(parts.scheme.lower(), 0)
    except ValueError:
        return address.lower().rstrip("/")
    return f"{(parts.hostname or '').rstrip('.')}:{port}{parts.path.rstrip('/')}"
