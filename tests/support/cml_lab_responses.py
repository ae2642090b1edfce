"""Responses of a worker for one small lab, which tests can modify."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from typing import Any

import httpx

from lcm.cml.client.client import CmlClient
from lcm.cml.client.endpoint import CmlEndpoint
from lcm.cml.observation.model import ResourceObservation
from lcm.cml.observation.observer import observe_lab
from tests.support.cml_environment import QUICK_RETRIES, run

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PARTS = (
    "system_information",
    "nodes",
    "interfaces",
    "layer3_addresses",
    "simulation_stats",
    "resource_pool_usage",
)

ROUTER = {
    "id": "n1",
    "label": "R1",
    "node_definition": "csr1000v",
    "image_definition": None,
    "tags": ["serial:5041", "pat:tcp:2022:22", "core"],
    "cpus": None,
    "cpu_limit": None,
    "ram": None,
    "data_volume": None,
    "boot_disk_size": None,
    "state": "BOOTED",
    "operational": {
        "cpus": 2,
        "cpu_limit": 50,
        "ram": 3072,
        "boot_disk_size": 8,
        "data_volume": 2,
        "compute_id": "c1",
        "image_definition": "csr1000v-17",
    },
}
SERVER = {
    "id": "n2",
    "label": "web server",
    "node_definition": "ubuntu",
    "tags": ["vnc:5044"],
    "state": "BOOTED",
    "operational": {"cpus": 1, "cpu_limit": None, "ram": 2048, "boot_disk_size": 16, "data_volume": None},
}
CONNECTOR = {
    "id": "n3",
    "label": "out",
    "node_definition": "external_connector",
    "tags": [],
    "state": "BOOTED",
    "operational": {"cpus": 0, "cpu_limit": 100, "ram": 0, "boot_disk_size": 0, "data_volume": 0},
}
LAB_RESPONSES: dict[str, Any] = {
    "authenticate": "token",
    "system_information": {"version": "2.10.0+build.3", "ready": True},
    "nodes": [ROUTER, SERVER, CONNECTOR],
    "interfaces": [
        {
            "id": "i1",
            "node": "n1",
            "label": "Gi1",
            "slot": 0,
            "type": "physical",
            "state": "STARTED",
            "is_connected": True,
            "mac_address": "00:00:00:00:00:01",
            "operational": {"mac_address": "52:54:00:00:00:01"},
        },
        {"id": "i2", "node": "n2", "label": "eth0", "slot": 0, "is_connected": True, "mac_address": None},
    ],
    "layer3_addresses": {
        "n1": {
            "name": "R1",
            "interfaces": {"52:54:00:00:00:01": {"id": "i1", "ip4": ["10.0.0.1"], "ip6": ["fe80::1"]}},
        }
    },
    "simulation_stats": {
        "nodes": {
            "n1": {"cpu_usage": 100.18, "ram_usage": 50, "disk_usage": 1400, "times": {"BOOTED": 9}},
            "n2": {"cpu_usage": 2.5, "ram_usage": 25.5, "disk_usage": 2310.4},
            "n3": {"times": {}},
        },
        "links": {"l1": {"readbytes": 10, "drops": 0}},
    },
    "resource_pool_usage": [
        {
            "id": "p1",
            "label": "pool",
            "limit": {"licenses": 20, "ram": 65536, "cpus": 3200, "disk_space": None},
            "usage": {"licenses": 2, "ram": 5120, "cpus": 200, "disk_space": 26},
        }
    ],
}


def lab_responses(**replaced: Any) -> dict[str, Any]:
    """Return the responses with some replaced."""
    return {**copy.deepcopy(LAB_RESPONSES), **replaced}


def observation_from(responses: dict[str, Any], *, deadline: float = 10.0) -> ResourceObservation:
    """Return the observation of a worker with these responses; bytes are sent unchanged."""

    def respond(request: httpx.Request) -> httpx.Response:
        value = responses[request.url.path.rpartition("/")[2]]
        if isinstance(value, httpx.Response):
            return value
        return httpx.Response(200, content=value if isinstance(value, bytes) else json.dumps(value).encode())

    async def observe() -> ResourceObservation:
        worker = CmlEndpoint("w1", "https://cml.test", "admin", "secret")
        async with CmlClient(
            worker, retry_policy=QUICK_RETRIES, transport=httpx.MockTransport(respond)
        ) as cml:
            return await observe_lab(cml, "lab-1", controller="test", deadline=deadline, now=lambda: NOW)

    return run(observe())
