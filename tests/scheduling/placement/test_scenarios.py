"""Every scenario: the result of one cycle, and no changes in five more cycles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduling.placement.framework.model import Snapshot
from tests.scheduling.placement.scenario import (
    FOLDER,
    Scenario,
    apply_decisions,
    outcome_of,
    read_scenario,
    run_scenario,
    without_jobs,
)

SCENARIOS = sorted(FOLDER.glob("*.yaml"))
LATER_CYCLES = 5


def test_scenarios_are_found():
    assert len(SCENARIOS) >= 40


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_has_its_expected_result(path: Path):
    scenario = read_scenario(path)
    after = _check_cycles(scenario, scenario.snapshot, scenario.expect, scenario.expect_later)
    if scenario.ended_jobs:
        _check_cycles(scenario, without_jobs(after, scenario.ended_jobs), scenario.expect_after, {})


def _check_cycles(
    scenario: Scenario, snapshot: Snapshot, expect: dict[str, Any], expect_later: dict[str, Any]
) -> Snapshot:
    """Check one cycle and the cycles after it; return the final snapshot."""
    cycle = run_scenario(scenario, snapshot)
    outcome = outcome_of(cycle)
    assert outcome == ({"order": outcome["order"], **expect} if outcome else expect)
    later_verdicts = expect_later or _unplaced(outcome)
    held = outcome.get("held", {})
    for _ in range(LATER_CYCLES):
        snapshot = apply_decisions(snapshot, cycle)
        cycle = run_scenario(scenario, snapshot)
        later_outcome = outcome_of(cycle)
        assert "placed" not in later_outcome
        assert "stopped" not in later_outcome
        assert later_outcome.get("held", {}) == held
        assert _unplaced(later_outcome) == later_verdicts
    return snapshot


def _unplaced(outcome: dict[str, Any]) -> dict[str, Any]:
    return {key: outcome[key] for key in ("waiting", "refused", "impossible") if key in outcome}
