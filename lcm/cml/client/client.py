"""Client of the CML API, with typed and tolerant results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Self, TypeVar
from urllib.parse import quote

import httpx

from lcm.cml.client import results
from lcm.cml.client.caller import Caller, CallRecord, RetryPolicy
from lcm.cml.client.endpoint import CmlEndpoint
from lcm.cml.client.errors import CmlError, CmlMalformedResponse, CmlNotFound, CmlRejected
from lcm.cml.client.system_results import ResourcePoolUsage, SystemInformation, SystemStats
from lcm.cml.client.transport import Call, Transport
from lcm.cml.client.version import BULK_INTERFACES, Version
from lcm.cml.json_values import as_list, as_mapping, as_text

T = TypeVar("T")

NODE_DATA = {"data": "true", "operational": "true", "exclude_configurations": "true"}
INTERFACE_DATA = {"data": "true", "operational": "true"}
UNSUPPORTED_CALL = frozenset({404, 405})
FORBIDDEN = 403
INTERFACES_AT_ONCE = 8


class CmlClient:
    """Client of one worker: `async with CmlClient(worker) as cml: await cml.nodes(lab_id)`.

    Every call raises only CmlError (see errors). `on_call` is called for each HTTP exchange.
    """

    def __init__(
        self,
        worker: CmlEndpoint,
        *,
        retry_policy: RetryPolicy | None = None,
        on_call: Callable[[CallRecord], None] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.worker = worker
        self._caller = Caller(Transport(worker, transport=transport), retry_policy or RetryPolicy(), on_call)
        self._version: Version | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. The token is left to expire."""
        await self._caller.aclose()

    # The controller itself

    async def system_information(self) -> SystemInformation:
        """Return version and readiness. CML requires no log-in for this call."""
        call = Call("system_information", "GET", "system_information", authenticated=False)
        information = SystemInformation.read(await self._mapping(call))
        self._version = information.version or self._version
        return information

    async def version(self) -> Version | None:
        """Return the version, requested once; None if CML's version text cannot be parsed."""
        if self._version is None:
            await self.system_information()
        return self._version

    async def system_stats(self) -> SystemStats:
        """Return capacity and usage of all computes."""
        return SystemStats.read(await self._mapping(Call("system_stats", "GET", "system_stats")))

    async def resource_pool_usage(self) -> tuple[ResourcePoolUsage, ...] | None:
        """Return limits and usage of the resource pools; None if CML lacks or denies this call."""
        try:
            entries = await self._list(Call("resource_pool_usage", "GET", "resource_pool_usage"))
        except CmlRejected as error:
            if error.status in UNSUPPORTED_CALL or error.status == FORBIDDEN:
                return None
            raise
        return tuple(ResourcePoolUsage.read(as_mapping(entry)) for entry in entries)

    # Labs

    async def labs(self) -> tuple[str, ...]:
        """Return the ids of the labs of all users."""
        entries = await self._list(Call("labs", "GET", "labs", params={"show_all": "true"}))
        return tuple(text for entry in entries if (text := as_text(entry)))

    async def lab(self, lab_id: str) -> results.CmlLab:
        """Return title, owner and state of a lab."""
        call = Call("lab", "GET", _lab(lab_id))
        lab = results.CmlLab.read(await self._mapping(call), lab_id)
        if lab is None:
            raise self._malformed(call, "the response has no lab title")
        return lab

    async def import_lab(self, topology: str, *, title: str) -> str:
        """Import a topology under a title and return the lab id. Never retried."""
        call = Call(
            "import",
            "POST",
            "import",
            params={"title": title},
            content=topology.encode(),
            idempotent=False,
        )
        lab_id = as_text((await self._mapping(call)).get("id"))
        if not lab_id:
            raise self._malformed(call, "the response has no lab id")
        return lab_id

    async def start_lab(self, lab_id: str) -> None:
        """Start all nodes. Returns before they have booted."""
        await self._caller.execute(Call("start", "PUT", _lab(lab_id, "start")))

    async def stop_lab(self, lab_id: str) -> None:
        """Stop all nodes."""
        await self._caller.execute(Call("stop", "PUT", _lab(lab_id, "stop")))

    async def wipe_lab(self, lab_id: str) -> None:
        """Remove the disks of a stopped lab."""
        await self._caller.execute(Call("wipe", "PUT", _lab(lab_id, "wipe")))

    async def delete_lab(self, lab_id: str) -> None:
        """Delete a stopped and wiped lab. A missing lab counts as success."""
        try:
            await self._caller.execute(Call("delete", "DELETE", _lab(lab_id)))
        except CmlNotFound:
            return

    async def lab_state(self, lab_id: str) -> str:
        """Return DEFINED_ON_CORE, STARTED, STOPPED, or a state of a newer CML."""
        call = Call("state", "GET", _lab(lab_id, "state"))
        return self._expect(call, as_text(await self._caller.send(call)), "text")

    async def check_if_converged(self, lab_id: str) -> bool:
        """Return whether all running nodes have booted."""
        call = Call("check_if_converged", "GET", _lab(lab_id, "check_if_converged"))
        value = await self._caller.send(call)
        return self._expect(call, value if isinstance(value, bool) else None, "true or false")

    # Nodes

    async def nodes(self, lab_id: str) -> results.Entries[results.CmlNode]:
        """Return all nodes with operational data, without configurations."""
        call = Call("nodes", "GET", _lab(lab_id, "nodes"), params=NODE_DATA)
        return results.entries(await self._list(call), results.CmlNode.read)

    async def set_node_tags(self, lab_id: str, node_id: str, tags: Iterable[str]) -> None:
        """Replace the tags of a node."""
        path = _lab(lab_id, "nodes", node_id)
        await self._caller.execute(Call("node_tags", "PATCH", path, json={"tags": list(tags)}))

    async def get_node_interfaces(self, lab_id: str, node_id: str) -> results.Entries[results.CmlInterface]:
        """Return the interfaces of one node with operational data."""
        path = _lab(lab_id, "nodes", node_id, "interfaces")
        call = Call("get_node_interfaces", "GET", path, params=INTERFACE_DATA)
        return results.entries(await self._list(call), results.CmlInterface.reader(node_id))

    async def bulk_interfaces(self, lab_id: str) -> results.Entries[results.CmlInterface] | None:
        """Return the interfaces of all nodes in one response; None if CML (before 2.10) lacks the call."""
        if not await self._has_bulk_interfaces():
            return None
        call = Call("interfaces", "GET", _lab(lab_id, "interfaces"), params=INTERFACE_DATA)
        try:
            return results.entries(await self._list(call), results.CmlInterface.reader(None))
        except CmlRejected as error:
            if error.status in UNSUPPORTED_CALL and "Lab not found" not in error.description:
                return None
            raise

    async def interfaces_one_by_one(self, lab_id: str, node_ids: Iterable[str]) -> results.InterfacesByNode:
        """Return the interfaces by node, one call per node. A failed call yields its error for that node."""

        semaphore = asyncio.Semaphore(INTERFACES_AT_ONCE)

        async def fetch(node_id: str) -> results.Entries[results.CmlInterface] | CmlError:
            async with semaphore:
                try:
                    return await self.get_node_interfaces(lab_id, node_id)
                except CmlError as error:
                    return error

        requested = tuple(dict.fromkeys(node_ids))
        return dict(zip(requested, await asyncio.gather(*map(fetch, requested)), strict=True))

    async def _has_bulk_interfaces(self) -> bool:
        """Return whether CML is new enough. If the version is unknown, the call is attempted."""
        try:
            version = await self.version()
        except CmlError:
            return True
        return version is None or version >= BULK_INTERFACES

    async def layer3_addresses(self, lab_id: str) -> results.Layer3Addresses:
        """Return the snooped addresses by interface id."""
        call = Call("layer3_addresses", "GET", _lab(lab_id, "layer3_addresses"))
        return results.Layer3Addresses.read(await self._mapping(call))

    async def link_ends(self, lab_id: str) -> dict[str, results.LinkEnds]:
        """Return the nodes at both ends of each link, by link id."""
        call = Call("topology", "GET", _lab(lab_id, "topology"), params={"exclude_configurations": "true"})
        return results.LinkEnds.read_all(await self._mapping(call))

    async def get_lab_simulation_stats(self, lab_id: str) -> results.SimulationStats:
        """Return usage of nodes and links by id."""
        call = Call("simulation_stats", "GET", _lab(lab_id, "simulation_stats"))
        return results.SimulationStats.read(await self._mapping(call))

    # Response shapes

    async def _mapping(self, call: Call) -> dict[str, object]:
        value = await self._caller.send(call)
        return self._expect(call, value if isinstance(value, dict) else None, "an object")

    async def _list(self, call: Call) -> list[object]:
        value = await self._caller.send(call)
        entries = self._expect(call, value if isinstance(value, list) else None, "a list")
        if len(entries) > len(as_list(entries)):
            raise self._malformed(call, f"the list is too long: {len(entries):,} entries")
        return entries

    def _expect(self, call: Call, value: T | None, shape: str) -> T:
        if value is None:
            raise self._malformed(call, f"the response is not {shape}")
        return value

    def _malformed(self, call: Call, description: str) -> CmlMalformedResponse:
        return CmlMalformedResponse(self.worker.name, call.name, description)


def _lab(lab_id: str, *path: str) -> str:
    """Return the path of a lab or of a resource below it."""
    return "/".join(("labs", *(quote(part, safe="") for part in (lab_id, *path))))
