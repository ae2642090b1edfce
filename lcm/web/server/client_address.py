"""The network address of the client behind a request."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest

Address = IPv4Address | IPv6Address


def client_address(request: HttpRequest) -> str:
    """Return the client's address, or an empty string if the server does not know it.

    This is the address of the peer. If the peer is in `TRUSTED_PROXIES`, it is the right-most address of
    `X-Forwarded-For` that is not: each proxy appends its own peer, so addresses further left may be forged.
    """
    peer = request.META.get("REMOTE_ADDR", "")
    address = _parse(peer)
    if address is None:
        return str(peer)
    hops = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    while _is_trusted(address) and hops:
        forwarded = _parse(hops.pop())
        if forwarded is None:
            break
        address = forwarded
    return str(address)


def _is_trusted(address: Address) -> bool:
    return any(address in network for network in settings.CONFIG["TRUSTED_PROXIES"])


def _parse(text: str) -> Address | None:
    """Parse an address; some proxies append a port, and a dual-stack socket reports IPv4 as IPv6."""
    text = text.strip()
    try:
        address = ip_address(text)
    except ValueError:
        try:
            address = ip_address(urlsplit(f"//{text}").hostname or "")
        except ValueError:
            return None
    return getattr(address, "ipv4_mapped", None) or address
