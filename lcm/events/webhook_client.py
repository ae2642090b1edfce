"""Send a request to a webhook: no redirects, a limit on the total time, and no internal addresses."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import httpx

TIME_LIMIT_SECONDS = 10.0
KEPT_RESPONSE_BYTES = 1024
MAX_ERROR = 300
_NAT64 = IPv6Network("64:ff9b::/96")

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class AddressRefused(Exception):
    """LCM does not send to this address."""


@dataclass(frozen=True)
class SendResult:
    """The result of one attempt; `status` is None if the endpoint sent no response."""

    duration_ms: int
    status: int | None = None
    error: str = ""
    response: str = ""
    retry_after: float | None = None

    @property
    def is_delivered(self) -> bool:
        return not self.error


def send_request(
    url: str, *, body: bytes, headers: Mapping[str, str], allowed: Iterable[Network]
) -> SendResult:
    """POST a body and return the result; failures of any kind are results."""
    started = time.monotonic()
    try:
        found = asyncio.run(_within_limit(url, body, dict(headers), tuple(allowed)))
    except TimeoutError:
        found = SendResult(0, error=f"no complete response within {TIME_LIMIT_SECONDS:g} s")
    except (AddressRefused, httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        found = SendResult(0, error=_error_text(error))
    duration = round((time.monotonic() - started) * 1000)
    return SendResult(duration, found.status, found.error, found.response, found.retry_after)


async def _within_limit(
    url: str, body: bytes, headers: dict[str, str], allowed: tuple[Network, ...]
) -> SendResult:
    async with asyncio.timeout(TIME_LIMIT_SECONDS):
        return await _send(httpx.URL(url), body, headers, allowed)


async def _send(
    url: httpx.URL, body: bytes, headers: dict[str, str], allowed: tuple[Network, ...]
) -> SendResult:
    addresses = await _checked_addresses(url, allowed)
    # The transport is given, so that no proxy of the environment applies.
    transport = httpx.AsyncHTTPTransport(verify=_tls_context())
    async with httpx.AsyncClient(transport=transport, trust_env=False, timeout=TIME_LIMIT_SECONDS) as client:
        for address in addresses[:-1]:
            try:
                return await _post(client, url, address, body, headers)
            except httpx.ConnectError:
                continue
        return await _post(client, url, addresses[-1], body, headers)


async def _post(
    client: httpx.AsyncClient, url: httpx.URL, address: Address, body: bytes, headers: dict[str, str]
) -> SendResult:
    """Connect to the checked address; TLS verifies the host name of the URL."""
    target = url.copy_with(host=str(address))
    headers = {**headers, "Host": url.netloc.decode("ascii")}
    extensions = {"sni_hostname": url.raw_host.decode("ascii")}
    async with client.stream(
        "POST", target, content=body, headers=headers, extensions=extensions, follow_redirects=False
    ) as response:
        kept = b""
        async for part in response.aiter_raw():
            kept += part
            if len(kept) >= KEPT_RESPONSE_BYTES:
                break
    text = kept[:KEPT_RESPONSE_BYTES].decode(errors="replace").replace("\0", "")
    return SendResult(0, response.status_code, _status_error(response), text, _retry_after(response))


async def _checked_addresses(url: httpx.URL, allowed: tuple[Network, ...]) -> list[Address]:
    """Resolve the host once; raise AddressRefused if LCM must not connect to one of its addresses."""
    port = url.port or (443 if url.scheme == "https" else 80)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(ip_address(each[4][0]) for each in found))
    for address in addresses:
        if not is_allowed(address, allowed, is_https=url.scheme == "https"):
            raise AddressRefused(
                f"the address {address} is not allowed for {url.scheme}; see WEBHOOK_ALLOWED_NETWORKS"
            )
    return addresses


def is_allowed(address: Address, allowed: Iterable[Network], *, is_https: bool) -> bool:
    """Return whether LCM may connect: to public addresses by https, to allowed networks also by http."""
    target = _embedded(address)
    if any(target in network for network in allowed):
        return True
    return is_https and target.is_global and not target.is_multicast


def _embedded(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address embeds."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


@cache
def _tls_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def _status_error(response: httpx.Response) -> str:
    if response.is_success:
        return ""
    if response.is_redirect:
        return f"HTTP {response.status_code}: redirects are not followed"
    return f"HTTP {response.status_code}"


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds of a Retry-After header, which is a number or a date."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


def _error_text(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:MAX_ERROR]
