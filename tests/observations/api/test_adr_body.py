"""The observation body documented in ADR-030: accepted, described, and rejected with all errors."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

import pytest

from lcm.cml.observation import model as forms
from observations.models import SessionObservation

INTERFACE = {
    "interface_id": "i0",
    "label": "eth0",
    "slot": 0,
    "state": "STARTED",
    "mac_address": "52:54:00:00:00:01",
    "ip4": ["10.0.0.1"],
}


def adr_body(now):
    """Only the fields that ADR-030 lists."""
    return {
        "observed_at": now.isoformat(),
        "observer": "lablet-controller",
        "total_cpu_cores": 3.0,
        "total_memory_mb": 4096,
        "total_storage_mb": None,
        "nodes": [
            {
                "node_id": "n0",
                "label": "PC",
                "node_definition": "ubuntu",
                "state": "BOOTED",
                "cpu_limit": 100,
                "ram_mb": 3072,
                "tags": ["serial:5041"],
                "interfaces": [INTERFACE],
            },
            {
                "node_id": "n1",
                "label": "iosv-0",
                "node_definition": "iosv",
                "state": "BOOTED",
                "cpu_limit": None,
                "ram_mb": 1024,
                "tags": [],
                "interfaces": [],
            },
        ],
        "actual_node_count": 2,
        "node_definitions_used": ["iosv", "ubuntu"],
        "observed_ports": {"PC_serial": 5041},
        "simulation_stats": {"nodes": {"n0": {"cpu_usage": 12.5, "anything": ["CML", None]}}},
    }


@pytest.fixture
def observations_path(collecting):
    return f"/api/internal/lablet-sessions/{collecting.pk}/resource-observations/"


def test_a_body_with_the_fields_of_the_adr_is_recorded(
    api, controller, viewer, collecting, observations_path, now
):
    for _ in range(2):
        assert api(controller).post(observations_path, adr_body(now)).status_code == 200
    collecting.refresh_from_db()
    assert collecting.observation_count == 1
    row = SessionObservation.objects.get()
    assert (row.observed_resources, row.memory_allocated) == (adr_body(now), 4)
    path = f"/api/lablet-definitions/{collecting.definition_id}/resource-observations/?by=node"
    response = api(viewer).get(path).json()
    assert {node["label"]: node["max"]["memory_gb"] for node in response["nodes"]} == {
        "PC": "3.00",
        "iosv-0": "1.00",
    }
    assert [node["percent"] for node in response["maximum_by_node"]["nodes"]] == [75, 25]


def test_the_maximum_by_node_is_null_without_known_node_memory(
    api, controller, viewer, collecting, observations_path, now
):
    body = adr_body(now)
    for node in body["nodes"]:
        del node["ram_mb"]
    assert api(controller).post(observations_path, body).status_code == 200
    path = f"/api/lablet-definitions/{collecting.definition_id}/resource-observations/"
    assert api(viewer).get(path).json()["maximum_by_node"] is None


def test_every_error_of_a_body_is_reported_with_its_path(api, controller, observations_path, now):
    body = adr_body(now + timedelta(hours=1)) | {"observer": "eu-1", "lab": "x", "total_memory_mb": "4 GB"}
    body["nodes"][0]["interfaces"] = [INTERFACE, {"label": "eth1", "id": "i1"}]
    body["nodes"][1] = {"node_id": "n1", "label": "iosv-0", "node_definition": None, "ram_mb": -1}
    body["observed_ports"] = {"PC_serial": 70_000, "PC_vnc": 5044}
    response = api(controller).post(observations_path, body)
    assert response.status_code == 422
    assert response.json()["details"] == {
        "observed_at": ["is in the future; check the clock of the controller."],
        "observer": ['must be lablet-controller or manual, not "eu-1".'],
        "lab": ["is not a field of an observation."],
        "total_memory_mb": ['must be a whole number from 0 to 1,000,000,000, not "4 GB".'],
        "nodes.0.interfaces.1.interface_id": ["is missing."],
        "nodes.0.interfaces.1.id": ["is not a field of an observation."],
        "nodes.1.node_definition": ["is missing."],
        "nodes.1.ram_mb": ["must be a whole number from 0 to 1,000,000,000, not -1."],
        "observed_ports.PC_serial": ["must be a port from 1 to 65535, not 70000."],
    }
    assert response.json()["message"].endswith("8 more values are wrong.")
    assert not SessionObservation.objects.exists()


def test_the_openapi_document_describes_every_field(api, admin):
    schemas = api(admin).get("/api/schema?format=json").json()["components"]["schemas"]
    for name, form, required in (
        ("Observation", forms.ResourceObservation, {"observed_at", "observer"}),
        ("NodeObservation", forms.NodeObservation, {"node_id", "label", "node_definition"}),
        ("InterfaceObservation", forms.InterfaceObservation, {"interface_id", "label"}),
        ("PoolUsage", forms.PoolUsage, {"pool_id", "label"}),
        ("MissingPart", forms.MissingPart, {"part", "message"}),
    ):
        schema, names = schemas[f"{name}Request"], {each.name for each in fields(form)}
        assert (set(schema["properties"]), set(schema["required"])) == (names, required)
        assert all(field.get("description") for field in schema["properties"].values()), name
