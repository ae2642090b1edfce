"""Send requests to a webhook: no redirects, a limit on the total time, and no internal addresses."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import httpx

from lcm.events.webhook_errors import RequestRefused, error_text, status_error

TIME_LIMIT_SECONDS = 10.0
KEPT_RESPONSE_BYTES = 1024
GONE = 410
_NAT64 = IPv6Network("64:ff9b::/96")
# All public IPv6 addresses. Local, reserved and translated ones are outside.
_GLOBAL_UNICAST = IPv6Network("2000::/3")
# Errors of a kept connection that the server closed between two requests.
_CLOSED = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@dataclass(frozen=True)
class SendResult:
    """The result of one attempt; `status` is None if there was no response."""

    duration_ms: int
    status: int | None = None
    error: str = ""
    response: str = ""
    retry_after: float | None = None
    # Another attempt would be refused too.
    is_final: bool = False

    @property
    def is_delivered(self) -> bool:
        return not self.error


class EndpointClient:
    """Sends requests to one endpoint, one after the other, and keeps the connection while they succeed."""

    def __init__(self, url: str, *, allowed: Iterable[Network], ca_file: str = "") -> None:
        self._url, self._allowed, self._ca_file = url, tuple(allowed), ca_file
        self._connection: tuple[httpx.AsyncClient, list[Address]] | None = None

    async def post(self, body: bytes, headers: Mapping[str, str]) -> SendResult:
        """POST a body and return the result; failures of any kind are results."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(TIME_LIMIT_SECONDS):
                found = await self._post(body, headers)
        except (RequestRefused, httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            found = SendResult(0, error=error_text(error, self._url, limit=TIME_LIMIT_SECONDS))
        if not found.is_delivered:
            await self.close()
        duration = round((time.monotonic() - started) * 1000)
        return replace(found, duration_ms=duration)

    async def close(self) -> None:
        """End the connection; the next request resolves and checks the host again."""
        connection, self._connection = self._connection, None
        if connection:
            await connection[0].aclose()

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> SendResult:
        url = httpx.URL(self._url)
        if self._connection:
            try:
                return await self._send(url, body, headers)
            except _CLOSED:
                await self.close()
        addresses = await _checked_addresses(url, self._allowed)
        # The transport is given, so that no proxy of the environment applies.
        transport = httpx.AsyncHTTPTransport(verify=_tls_context(self._ca_file))
        client = httpx.AsyncClient(transport=transport, trust_env=False, timeout=TIME_LIMIT_SECONDS)
        self._connection = client, addresses
        return await self._send(url, body, headers)

    async def _send(self, url: httpx.URL, body: bytes, headers: Mapping[str, str]) -> SendResult:
        """Send to the first address that accepts the connection, and keep this address."""
        assert self._connection
        client, addresses = self._connection
        while len(addresses) > 1:
            try:
                return await _request(client, url, addresses[0], body, headers)
            except httpx.ConnectError:
                del addresses[0]
        return await _request(client, url, addresses[0], body, headers)


async def _request(
    client: httpx.AsyncClient, url: httpx.URL, address: Address, body: bytes, headers: Mapping[str, str]
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
    return SendResult(
        0,
        response.status_code,
        status_error(response),
        text,
        _retry_after(response),
        is_final=response.status_code == GONE,
    )


async def _checked_addresses(url: httpx.URL, allowed: tuple[Network, ...]) -> list[Address]:
    """Resolve the host once; raise RequestRefused if LCM must not connect to one of its addresses."""
    port = url.port or (443 if url.scheme == "https" else 80)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(ip_address(each[4][0]) for each in found))
    for address in addresses:
        if not is_allowed(address, allowed, is_https=url.scheme == "https"):
            refused = f"LCM must not connect to {address} by {url.scheme}."
            raise RequestRefused(f"{refused} WEBHOOK_ALLOWED_NETWORKS allows networks.")
    return addresses


def is_allowed(address: Address, allowed: Iterable[Network], *, is_https: bool) -> bool:
    """Return whether LCM may connect: to public addresses by https, to allowed networks also by http."""
    target = _embedded(address)
    if any(target in network for network in allowed):
        return True
    if target.version == 6 and target not in _GLOBAL_UNICAST:
        return False
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
def _tls_context(ca_file: str) -> ssl.SSLContext:
    context = httpx.create_ssl_context()
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:
            raise RequestRefused(f"WEBHOOK_CA_FILE cannot be read: {error}.") from error
    return context


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
