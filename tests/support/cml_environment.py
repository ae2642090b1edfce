"""Test setup for CML: topologies, in-process simulators and clients."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx

from lcm.cml.client.caller import CallRecord, RetryPolicy
from lcm.cml.client.client import CmlClient
from lcm.cml.client.endpoint import CmlEndpoint
from lcm.cml.simulator import ControllerOptions
from tests.support.simulator import FaultyController, FaultySimulator

T = TypeVar("T")

AT_ONCE = dict.fromkeys(("queue_seconds", "starting_seconds", "boot_seconds", "stop_seconds"), 0)
QUICK = {"token_seconds": 1e9, **AT_ONCE}
QUICK_RETRIES = RetryPolicy(
    exchange_seconds=5, call_seconds=10, first_pause=0.001, longest_pause=0.01, draw=lambda: 0.5
)

TWO_ROUTERS = """
lab: {title: Two routers, description: d, notes: n, version: 0.2.2}
nodes:
  - id: n0
    label: R1
    node_definition: iosv
    cpu_limit: 50
    tags: ['serial:5001', 'pat:2022:22', core]
    configuration: hostname R1
    interfaces:
      - {id: i0, label: Loopback0, type: loopback}
      - {id: i1, label: Gi0/0, slot: 0, type: physical}
  - id: n1
    label: R2
    node_definition: iosv
    ram: 1024
    cpus: 2
    boot_disk_size: 4
    data_volume: 8
    tags: ['serial:5002']
    interfaces:
      - {id: i0, label: Gi0/0, slot: 0, type: physical}
  - id: n2
    label: out
    node_definition: external_connector
    interfaces: [{id: i0, label: port, slot: 0, type: physical}]
links:
  - {id: l0, n1: n0, i1: i1, n2: n1, i2: i0, label: wire}
"""


class SimulatorClock:
    """A clock that moves only through `advance`."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine with a timeout of half a minute."""

    async def bounded() -> T:
        async with asyncio.timeout(30):
            return await coroutine

    return asyncio.run(bounded())


def many_nodes(count: int) -> str:
    """Return a topology with this many nodes, one interface each."""
    nodes = "\n".join(
        f"  - {{id: n{n}, label: A{n}, node_definition: alpine, tags: ['serial:{6000 + n}'],"
        f" interfaces: [{{id: i0, label: eth0, slot: 0, type: physical}}]}}"
        for n in range(count)
    )
    return f"lab: {{title: Many, version: 0.2.2}}\nnodes:\n{nodes}\nlinks: []\n"


def make_simulator(clock: SimulatorClock | None = None, **options: Any) -> FaultyController:
    """Return an in-process simulator that boots at once."""
    controller_options = ControllerOptions(**{**QUICK, **options})
    return FaultyController("", controller_options, **({"clock": clock} if clock else {}))


class RecordingClient(CmlClient):
    """A client of an in-process simulator that records its exchanges."""

    def __init__(
        self,
        controller: FaultyController,
        *,
        retry_policy: RetryPolicy = QUICK_RETRIES,
        password: str = "simulated",
    ):
        self.records: list[CallRecord] = []
        super().__init__(
            CmlEndpoint("w1", "http://cml.test", "admin", password),
            retry_policy=retry_policy,
            on_call=self.records.append,
            transport=httpx.ASGITransport(FaultySimulator(controller)),
        )

    @property
    def exchanges(self) -> list[tuple[str, str]]:
        return [(record.call, record.result) for record in self.records]


async def import_and_start(client: CmlClient, topology: str = TWO_ROUTERS, title: str = "a lab") -> str:
    """Start a lab and return its id."""
    lab_id = await client.import_lab(topology, title=title)
    await client.start_lab(lab_id)
    return lab_id
