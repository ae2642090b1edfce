"""Snapshot documents: valid input, rejected input with its path, and round trips."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduling.placement.framework.model import FOREVER, Gang, JobPart, Node, Queue, Task
from scheduling.placement.framework.snapshot_json import (
    InvalidSnapshot,
    as_document,
    read_snapshot,
    snapshot_from,
    write_snapshot,
)
from tests.scheduling.placement.inline_plugins import units

FULL: dict[str, Any] = {
    "format": 1,
    "pool": "lab",
    "now": 1700000000.25,
    "templates": [{"name": "lab-new", "capacity": {"cpu_cores": 8}}],
    "coming": [{"name": "lab-03", "capacity": {"cpu_cores": 2}, "labels": {"zone": "b"}}],
    "max_nodes": 3,
    "nodes": [
        {
            "name": "lab-01",
            "capacity": {"cpu_cores": 4.5, "memory_gb": 8, "storage_gb": 100, "gpu": 1.5},
            "id": "f00",
            "system": "cml",
            "labels": {"zone": "a"},
            "spot": True,
            "cordoned": True,
            "until": 1700003600,
            "max_leases": 3,
            "ports": 10,
            "leaked": 2,
            "devices": [1, 0.5],
            "taken": {"cpu_cores": 0.25},
            "taken_leases": 1,
            "taken_devices": [[1, 0.25]],
        },
        {"name": "lab-02", "capacity": {}},
    ],
    "queues": [
        {"name": "uni", "weight": 2, "quota": {"memory_gb": 16.5, "sessions": 3}},
        {"name": "uni/a", "parent": "uni", "factor": 0.25},
        {"name": "uni/a/ann", "parent": "uni/a"},
    ],
    "jobs": [
        {
            "id": "waits",
            "queue": "uni/a",
            "owner": "uni/a/ann",
            "name": "exam",
            "priority": 90,
            "preemptible": True,
            "created": 12.5,
            "gang": "spread",
            "system": "cml",
            "labels": {"zone": "a"},
            "starts": 1700000100,
            "ends": 1700003600,
            "held_on": "f00",
            "verdict": "held",
            "tasks": [{"name": "r1", "request": {"cpu_cores": 1}, "ports": 2}, {"name": "r2", "request": {}}],
        },
        {
            "id": "runs",
            "queue": "uni",
            "gang": "spread",
            "leaving": True,
            "tasks": [
                {"name": "r1", "request": {"gpu": 0.5}, "node": "f00", "devices": [[0, 0.5]]},
                {"name": "r2", "request": {"cpu_cores": 1}, "node": "f00"},
                {"name": "r3", "request": {"cpu_cores": 1}, "node": "lab-02"},
            ],
        },
    ],
}


def test_every_field_is_read():
    snapshot = snapshot_from(FULL)
    assert (snapshot.pool, snapshot.now) == ("lab", 1700000000.25)
    assert snapshot.templates == [Node("lab-new", units(800))]
    assert snapshot.coming == [Node("lab-03", units(200), labels={"zone": "b"})]
    assert snapshot.nodes[0] == Node(
        name="lab-01", capacity=units(450, 800, 10_000, 150), id="f00", system="cml", labels={"zone": "a"},
        spot=True, cordoned=True, until=1700003600, max_leases=3, ports=10, leaked=2, devices=(100, 50),
        taken=units(25), taken_leases=1, taken_devices=((1, 25),),
    )  # fmt: skip
    assert snapshot.nodes[1].until == FOREVER
    assert snapshot.queues["uni"] == Queue("uni", weight=2, quota={"memory_gb": 1650, "sessions": 3})
    waiting, running = snapshot.jobs
    assert waiting.tasks == (Task("r1", units(100), 2), Task("r2", units(0)))
    assert (waiting.gang, waiting.labels, waiting.owner, waiting.parts) == (
        Gang.SPREAD, (("zone", "a"),), "uni/a/ann", (),
    )  # fmt: skip
    first, second, third = running.tasks
    assert running.parts == (JobPart("f00", (first, second), ((0, 50),)), JobPart("lab-02", (third,)))
    assert running.leaving


def test_a_document_survives_a_round_trip():
    assert as_document(snapshot_from(FULL)) == FULL
    assert json.loads(write_snapshot(read_snapshot(json.dumps(FULL)))) == FULL


def document_with(path: str, value: Any) -> dict[str, Any]:
    """Return the document with one value replaced."""
    document = json.loads(json.dumps(FULL))
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    parent = document
    for key in parents:
        parent = parent[key]
    parent[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "error_path", "message"),
    [
        ("format", 2, "format", "“format” is 2; only 1 can be read."),
        ("now", "noon", "now", "“now” must be a number"),
        ("pols", 1, "pols", "There is no setting “pols”; did you mean “pool”?"),
        ("nodes", {}, "nodes", "“nodes” must be a list of objects, but is {}."),
        ("nodes.0", 7, "nodes[0]", "“nodes[0]” must be an object of names and values, but is 7."),
        ("nodes.0.name", "", "nodes[0].name", "“nodes[0].name” must be text"),
        ("nodes.0.capacity", 3, "nodes[0].capacity", "must be an object of names and numbers, but is 3."),
        (
            "nodes.0.capacity.cpu_cores",
            -1,
            "nodes[0].capacity.cpu_cores",
            "must be a number of zero or more, but is -1.",
        ),
        (
            "nodes.0.capacity.cpu_cores",
            True,
            "nodes[0].capacity.cpu_cores",
            "must be a number of zero or more",
        ),
        (
            "nodes.0.capacity.ram",
            1,
            "nodes[0].capacity.ram",
            "“nodes[0].capacity.ram” is not a resource. There are: ",
        ),
        ("nodes.0.capacity.memory_g", 1, "nodes[0].capacity.memory_g", "; did you mean “memory_gb”?"),
        (
            "nodes.0.max_leases",
            1.5,
            "nodes[0].max_leases",
            "must be a whole number from 0 to 1000000, but is 1.5.",
        ),
        ("nodes.0.ports", -1, "nodes[0].ports", "must be a whole number from 0 to 65536, but is -1."),
        ("nodes.0.devices", [2], "nodes[0].devices", "above 0 and up to 1 for each GPU, but is [2]."),
        (
            "nodes.0.devices",
            [1, 1],
            "nodes[0].devices",
            "The devices add up to 2 GPUs, but the capacity is 1.5.",
        ),
        (
            "nodes.0.taken_devices",
            [[2, 0.5]],
            "nodes[0].taken_devices",
            "lab-01 has 2 GPUs and no GPU 2.",
        ),
        ("nodes.0.taken_devices", [0], "nodes[0].taken_devices", "a list of pairs"),
        ("nodes.0.labels", {"a": 1}, "nodes[0].labels", "must be an object of names and texts"),
        ("nodes.1.id", "f00", "nodes[1]", "“f00” is already nodes[0]."),
        ("templates.0.capacity.gpu", -2, "templates[0].capacity.gpu", "zero or more, but is -2."),
        (
            "coming.0.devices",
            [1],
            "coming[0].devices",
            "The devices add up to 1 GPUs, but the capacity is 0.",
        ),
        (
            "queues.1.parent",
            "unu",
            "queues[1].parent",
            "There is no queue “unu”. There are: uni, uni/a, uni/a/ann.",
        ),
        (
            "queues.0.parent",
            "uni/a",
            "queues[0].parent",
            "The queues form a cycle: uni → uni/a → uni.",
        ),
        ("queues.0.parent", "uni", "queues[0].parent", "The queues form a cycle: uni → uni."),
        ("queues.0.weight", -1, "queues[0].weight", "“queues[0].weight” must be a number from 0"),
        ("queues.0.quota", {"cpu": 1}, "queues[0].quota.cpu", "is not a resource"),
        ("queues.1.name", "uni", "queues[1]", "“uni” is already queues[0]."),
        ("jobs.0.queue", "uni/b", "jobs[0].queue", "There is no queue “uni/b”; did you mean “uni/a”?"),
        (
            "jobs.0.owner",
            "bob",
            "jobs[0].owner",
            "There is no queue “bob”. There are: uni, uni/a, uni/a/ann.",
        ),
        ("jobs.0.gang", "apart", "jobs[0].gang", "must be one of together, spread"),
        ("jobs.0.tasks", [], "jobs[0].tasks", "“jobs[0].tasks” must have at least one entry."),
        (
            "jobs.0.tasks.0.request",
            None,
            "jobs[0].tasks[0].request",
            "must be an object of names and numbers",
        ),
        (
            "jobs.0.tasks.0.request.cpu_cores",
            -0.5,
            "jobs[0].tasks[0].request.cpu_cores",
            "zero or more, but is -0.5.",
        ),
        ("jobs.0.tasks.0.node", "lab-02", "jobs[0].tasks", "either every task has a node, or none."),
        (
            "jobs.0.tasks.0.devices",
            [[0, 1]],
            "jobs[0].tasks[0].devices",
            "Only a task that runs holds devices.",
        ),
        ("jobs.0.id", "runs", "jobs[1]", "“runs” is already jobs[0]."),
        (
            "jobs.1.gang",
            "together",
            "jobs[1].tasks",
            "The tasks run on several nodes, but the gang is “together”.",
        ),
        (
            "jobs.1.tasks.2.node",
            "lab-03",
            "jobs[1].tasks[2].node",
            "There is no node “lab-03”; did you mean “lab-02”?",
        ),
        (
            "jobs.1.tasks.0.devices",
            [[5, 0.5]],
            "jobs[1].tasks[0].devices",
            "lab-01 has 2 GPUs and no GPU 5.",
        ),
        ("jobs.1.created", "x", "jobs[1].created", "“jobs[1].created” must be a number"),
    ],
)
def test_problems_are_reported_with_their_path(path, value, error_path, message):
    with pytest.raises(InvalidSnapshot) as error:
        snapshot_from(document_with(path, value))
    assert message in error.value.problems[error_path]
    assert f"{error_path}: " in str(error.value)


def test_several_problems_are_reported_at_once():
    with pytest.raises(InvalidSnapshot) as error:
        snapshot_from(
            {"now": 0, "nodes": [{"name": "a", "capacity": {"cpu_cores": -1, "gpu": "x"}, "spot": 1}]}
        )
    assert set(error.value.problems) == {
        "format", "nodes[0].capacity.cpu_cores", "nodes[0].capacity.gpu", "nodes[0].spot",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, '{"format": 1, "now": NaN}', '{"now": Infinity}', b"\xff\xfe\xfa"]
)
def test_invalid_json_is_reported(text):
    with pytest.raises(InvalidSnapshot, match="This is not JSON"):
        read_snapshot(text)


@pytest.mark.parametrize("value", [None, [], 3, "text"])
def test_a_document_must_be_an_object(value):
    with pytest.raises(InvalidSnapshot, match="must be an object of names and values"):
        snapshot_from(value)


def test_amounts_are_rounded_up_to_a_hundredth():
    document = document_with("jobs.0.tasks.0.request.cpu_cores", 0.301)
    assert snapshot_from(document).jobs[0].tasks[0].request[0] == 31
