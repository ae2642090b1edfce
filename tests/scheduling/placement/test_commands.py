"""`scheduler_replay`: a cycle over a document, without a database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from scheduling.placement.framework.model import Node, Queue
from scheduling.placement.framework.plugin import plugins
from scheduling.placement.framework.snapshot_json import JobRow, TaskRow, write_snapshot
from tests.scheduling.placement.inline_plugins import BUILT_IN, job, node, snapshot

ROOT = Path(__file__).parents[3]


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "snapshot.json"
    cluster = snapshot([node("s-01"), node("s-02", cordoned=True)], [job("small"), job("big", 9)])
    path.write_text(write_snapshot(cluster))
    return path


def replay(*arguments) -> str:
    output = StringIO()
    call_command("scheduler_replay", *map(str, arguments), stdout=output)
    return output.getvalue()


def test_a_replay_prints_the_placements(document):
    lines = replay(document).splitlines()
    why = (
        "None of 2 ready slots fits: 2 insufficient CPU (9 cores requested, at most 4 cores free); "
        "1 cordoned."
    )
    assert " ".join(lines[0].split()) == f"1 big impossible: {why}"
    assert lines[1].split() == ["2", "small", "placed", "on", "s-01"]
    assert lines[2] == "1 placed, 1 impossible; 0 to stop"


def test_a_replay_prints_json(document):
    result = json.loads(replay(document, "--json"))
    big, small = result["verdicts"]
    assert (big["outcome"], big["reasons"][0]["code"]) == ("impossible", "cpu_cores")
    assert (small["nodes"], small["position"]) == ({"s-01": ["t"]}, 2)
    assert set(small["scores"]) == {"spot", "binpack"}
    assert result["failures"] == {}


def test_a_replay_uses_the_given_configuration(document, tmp_path):
    config = tmp_path / "pool.yaml"
    config.write_text("actions: [allocate]\nplugins: [resources, spread]\n")
    assert "placed on s-01" in replay(document, "--config", config)
    config.write_text("actions: [allocate]\nplugins: [spraed]\n")
    with pytest.raises(CommandError, match="Line 2: There is no plugin “spraed”; did you mean “spread”"):
        replay(document, "--config", config)


def test_an_invalid_replay_input_is_reported(document, tmp_path):
    with pytest.raises(CommandError, match="cannot be read"):
        replay(tmp_path / "missing.json")
    document.write_text('{"format": 1, "now": 0, "nodes": [{"name": "a"}]}')
    with pytest.raises(CommandError, match=r"nodes\[0\].capacity: “nodes\[0\].capacity” is required"):
        replay(document)


def test_a_replay_needs_no_database(document):
    """In a separate process, with an unreachable database, from standard input."""
    environment = {
        "PATH": os.environ["PATH"], "SECRET_KEY": "x" * 50,
        "DATABASE_URL": "postgres://user:password@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0",
    }  # fmt: skip
    completed = subprocess.run(
        [sys.executable, "manage.py", "scheduler_replay", "-"],
        cwd=ROOT, env=environment, input=document.read_text(), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.endswith("1 placed, 1 impossible; 0 to stop\n")


def test_the_document_of_the_handbook_can_be_replayed(tmp_path):
    text = (ROOT / "docs" / "scheduler.md").read_text()
    path = tmp_path / "handbook.json"
    path.write_text(text.split("```json\n")[1].split("```")[0])
    assert replay(path).splitlines()[0].split() == ["1", "waiting", "placed", "on", "lab-01"]


def test_the_handbook_names_every_plugin_argument_and_field():
    text = (ROOT / "docs" / "scheduler.md").read_text()
    names = {field.name for row in (Node, Queue, JobRow, TaskRow) for field in fields(row)}
    names |= {field.name for name in BUILT_IN for field in fields(plugins()[name])} | set(BUILT_IN)
    assert {name for name in names if f"`{name}`" not in text} == set()
