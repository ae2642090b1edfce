"""Scenarios: a snapshot and a configuration in a file, and the expected result of a cycle."""

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
KEYS = {"what", "actions", "plugins", "snapshot", "expect", "quiet", "then"}
EXPECTED = {"order", "placed", "devices", "waiting", "refused", "impossible", "held", "stopped"}


@dataclass(frozen=True)
class Scenario:
    snapshot: Snapshot
    configuration: Configuration
    expect: dict[str, Any]
    # The verdicts from the next cycle on, if they differ.
    quiet: dict[str, Any]
    gone: list[str]
    after: dict[str, Any]


def read_scenario(path: Path) -> Scenario:
    values = yaml.safe_load(path.read_text())
    assert values.keys() <= KEYS, f"unknown: {values.keys() - KEYS}"
    assert values["expect"].keys() <= EXPECTED, f"unknown: {values['expect'].keys() - EXPECTED}"
    then = values.get("then", {"gone": [], "expect": {}})
    return Scenario(
        snapshot_from(values["snapshot"]),
        configuration_of(values.get("actions"), values.get("plugins")),
        values["expect"],
        values.get("quiet", {}),
        then["gone"],
        then["expect"],
    )


def configuration_of(actions: list[str] | None = None, plugins: list[Any] | None = None) -> Configuration:
    default = yaml.safe_load(DEFAULT_CONFIGURATION)
    document = {"actions": actions or default["actions"], "plugins": plugins or default["plugins"]}
    return read_configuration(yaml.safe_dump(document))


def copied(snapshot: Snapshot) -> Snapshot:
    """A copy of the jobs, so that a scenario can be run again."""
    return snapshot_from(as_document(snapshot))


def outcome_of(cycle: Cycle) -> dict[str, Any]:
    """The result in the format of a scenario."""
    result = as_result(cycle)
    found: dict[str, Any] = {key: {} for key in EXPECTED - {"order"}}
    for verdict in result["verdicts"]:
        outcome, job = verdict["outcome"], verdict["job"]
        if outcome == VerdictOutcome.PLACED or outcome == VerdictOutcome.HELD:
            found[outcome][job] = _where(verdict["nodes"])
            if outcome == VerdictOutcome.PLACED and "devices" in verdict:
                found["devices"][job] = verdict["devices"]
        else:
            found[outcome][job] = verdict["why"]
    found["stopped"] = {each["victim"]: each["for"] for each in result["evictions"]}
    found["order"] = [verdict["job"] for verdict in result["verdicts"]]
    assert result["failures"] == result["clipped_scores"] == {}
    return {key: value for key, value in found.items() if value}


def _where(nodes: dict[str, list[str]]) -> Any:
    """The name of the only node, or each node with its tasks."""
    return next(iter(nodes)) if len(nodes) == 1 and len(next(iter(nodes.values()))) == 1 else nodes


def applied(snapshot: Snapshot, cycle: Cycle) -> Snapshot:
    """The snapshot after applying the decisions: victims are stopping and their space is held."""
    verdicts = {verdict.job.id: verdict for verdict in cycle.verdicts}
    leaving = {eviction.victim.id for eviction in cycle.evictions}
    after = copied(snapshot)
    for job in after.jobs:
        verdict = verdicts.get(job.id)
        if verdict is not None:
            job.verdict = verdict.summary
            job.parts = verdict.parts if verdict.outcome is VerdictOutcome.PLACED else ()
            job.tasks = tuple(task for part in job.parts for task in part.tasks) or job.tasks
            job.held_on = verdict.parts[0].node if verdict.outcome is VerdictOutcome.HELD else ""
        job.leaving = job.leaving or job.id in leaving
    return after


def without(snapshot: Snapshot, gone: list[str]) -> Snapshot:
    return replace(snapshot, jobs=[job for job in snapshot.jobs if job.id not in gone])


def run(scenario: Scenario, snapshot: Snapshot) -> Cycle:
    return run_cycle(snapshot, scenario.configuration)
