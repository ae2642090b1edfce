"""Addresses of a node's ports on its worker: `ssh://worker:2036`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from lcm.cml.ports import PAT, SERIAL, TCP

# CML serves serial consoles as Telnet.
_SCHEMES = {SERIAL: "telnet"}
# Schemes of forwarded ports, by the port on the node.
_FORWARDED = {22: "ssh", 23: "telnet", 80: "http", 443: "https", 5900: "vnc"}


def host_of(endpoint: str) -> str:
    """Return the host of a worker's endpoint, an IPv6 address in brackets; empty if it has none."""
    try:
        host = urlsplit(endpoint).hostname or ""
    except ValueError:
        return ""
    return f"[{host}]" if ":" in host else host


def console_of(endpoint: str) -> str:
    """Return the address of the worker's web console; empty if its endpoint is none."""
    return endpoint if endpoint.startswith(("https://", "http://")) and host_of(endpoint) else ""


def lab_page_of(endpoint: str, lab: str) -> str:
    """Return the page of a lab in the web console; of the console itself if the lab is unknown."""
    console = console_of(endpoint)
    return f"{console.rstrip('/')}/lab/{quote(lab, safe='')}" if console and lab else console


@dataclass(frozen=True)
class NodeAddress:
    """A port of a node with its address. The host or the port may be unknown."""

    name: str
    protocol: str
    transport: str
    inside: int | None
    host: str
    port: int | None

    @property
    def address(self) -> str:
        """Return `host:port`; empty while a part is unknown."""
        return f"{self.host}:{self.port}" if self.host and self.port else ""

    @property
    def url(self) -> str:
        """Return the URL, or only the address of a port without a known scheme."""
        return f"{self.scheme}://{self.address}" if self.scheme and self.address else self.address

    @property
    def scheme(self) -> str:
        if self.transport != TCP:
            return ""
        if self.protocol == PAT:
            return _FORWARDED.get(self.inside or 0, "")
        return _SCHEMES.get(self.protocol, self.protocol)


def node_addresses(
    template: Iterable[Mapping[str, Any]], ports: Mapping[str, int], hosts: Mapping[str, str]
) -> dict[str, list[NodeAddress]]:
    """Return the addresses by node label, from allocated ports by name and hosts by node label."""
    addresses: dict[str, list[NodeAddress]] = {}
    for entry in template:
        label = entry["node_label"]
        addresses.setdefault(label, []).append(
            NodeAddress(
                name=entry["name"],
                protocol=entry["protocol"],
                transport=entry.get("transport", TCP),
                inside=entry.get("inside"),
                host=hosts.get(label, ""),
                port=ports.get(entry["name"]),
            )
        )
    return addresses
