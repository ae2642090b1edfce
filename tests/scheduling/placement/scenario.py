"""Scenario files: a snapshot, a configuration, and the expected result of a cycle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from scheduling.placement.framework.configuration import (
    DEFAULT_CONFIGURATION,
    Configuration,
    read_configuration,
)
from scheduling.placement.framework.cycle import Cycle, VerdictOutcome, run_cycle
from scheduling.placement.framework.model import Snapshot
from scheduling.placement.framework.results import as_result
from scheduling.placement.framework.snapshot_json import as_document, snapshot_from

FOLDER = Path(__file__).parent / "scenarios"
KEYS = {"rule", "actions", "plugins", "snapshot", "expect", "quiet", "then"}
EXPECTED = {"order", "placed", "devices", "waiting", "refused", "impossible", "held", "stopped"}


@dataclass(frozen=True)
class Scenario:
    snapshot: Snapshot
    configuration: Configuration
    expect: dict[str, Any]
    # The verdicts of later cycles, if they differ.
    expect_later: dict[str, Any]
    ended_jobs: list[str]
    expect_after: dict[str, Any]


def read_scenario(path: Path) -> Scenario:
    values = yaml.safe_load(path.read_text())
    assert values.keys() <= KEYS, f"unknown: {values.keys() - KEYS}"
    assert values["expect"].keys() <= EXPECTED, f"unknown: {values['expect'].keys() - EXPECTED}"
    second_part = values.get("then", {"gone": [], "expect": {}})
    return Scenario(
        snapshot_from(values["snapshot"]),
        configuration_of(values.get("actions"), values.get("plugins")),
        values["expect"],
        values.get("quiet", {}),
        second_part["gone"],
        second_part["expect"],
    )


def configuration_of(actions: list[str] | None = None, plugins: list[Any] | None = None) -> Configuration:
    default = yaml.safe_load(DEFAULT_CONFIGURATION)
    document = {"actions": actions or default["actions"], "plugins": plugins or default["plugins"]}
    return read_configuration(yaml.safe_dump(document))


def copy_of(snapshot: Snapshot) -> Snapshot:
    """Copy the snapshot, so that a scenario can be run again."""
    return snapshot_from(as_document(snapshot))


def outcome_of(cycle: Cycle) -> dict[str, Any]:
    """Return the result in the format of a scenario."""
    result = as_result(cycle)
    values: dict[str, Any] = {key: {} for key in EXPECTED - {"order"}}
    for verdict in result["verdicts"]:
        outcome, job = verdict["outcome"], verdict["job"]
        if outcome == VerdictOutcome.PLACED or outcome == VerdictOutcome.HELD:
            values[outcome][job] = _placement(verdict["nodes"])
            if outcome == VerdictOutcome.PLACED and "devices" in verdict:
                values["devices"][job] = verdict["devices"]
        else:
            values[outcome][job] = verdict["why"]
    values["stopped"] = {each["victim"]: each["for"] for each in result["evictions"]}
    values["order"] = [verdict["job"] for verdict in result["verdicts"]]
    assert result["failures"] == result["clipped_scores"] == {}
    return {key: value for key, value in values.items() if value}


def _placement(nodes: dict[str, list[str]]) -> Any:
    """Return the name of the only node, or each node with its tasks."""
    return next(iter(nodes)) if len(nodes) == 1 and len(next(iter(nodes.values()))) == 1 else nodes


def apply_decisions(snapshot: Snapshot, cycle: Cycle) -> Snapshot:
    """Return the snapshot after the decisions: victims are stopping and their space is held."""
    verdicts = {verdict.job.id: verdict for verdict in cycle.verdicts}
    leaving = {eviction.victim.id for eviction in cycle.evictions}
    after = copy_of(snapshot)
    for job in after.jobs:
        verdict = verdicts.get(job.id)
        if verdict is not None:
            job.verdict = verdict.summary
            job.parts = verdict.parts if verdict.outcome is VerdictOutcome.PLACED else ()
            job.tasks = tuple(task for part in job.parts for task in part.tasks) or job.tasks
            job.held_on = verdict.parts[0].node if verdict.outcome is VerdictOutcome.HELD else ""
        job.leaving = job.leaving or job.id in leaving
    return after


def without_jobs(snapshot: Snapshot, ended_jobs: list[str]) -> Snapshot:
    return replace(snapshot, jobs=[job for job in snapshot.jobs if job.id not in ended_jobs])


def run_scenario(scenario: Scenario, snapshot: Snapshot) -> Cycle:
    return run_cycle(snapshot, scenario.configuration)
