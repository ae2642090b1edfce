"""Every scenario: the result of one cycle, and that five more change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduling.placement.framework.model import Snapshot
from tests.scheduling.placement.scenario import (
    FOLDER,
    Scenario,
    applied,
    outcome_of,
    read_scenario,
    run,
    without,
)

SCENARIOS = sorted(FOLDER.glob("*.yaml"))
QUIET_CYCLES = 5


def test_there_are_scenarios():
    assert len(SCENARIOS) >= 40


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path):
    scenario = read_scenario(path)
    after = _decides(scenario, scenario.snapshot, scenario.expect, scenario.quiet)
    if scenario.gone:
        _decides(scenario, without(after, scenario.gone), scenario.after, {})


def _decides(
    scenario: Scenario, snapshot: Snapshot, expect: dict[str, Any], quiet: dict[str, Any]
) -> Snapshot:
    """Check one cycle, then idle ones; return the final snapshot."""
    cycle = run(scenario, snapshot)
    found = outcome_of(cycle)
    assert found == ({"order": found["order"], **expect} if found else expect)
    still = quiet or _unplaced(found)
    held = found.get("held", {})
    for _ in range(QUIET_CYCLES):
        snapshot = applied(snapshot, cycle)
        cycle = run(scenario, snapshot)
        again = outcome_of(cycle)
        assert "placed" not in again
        assert "stopped" not in again
        assert again.get("held", {}) == held
        assert _unplaced(again) == still
    return snapshot


def _unplaced(found: dict[str, Any]) -> dict[str, Any]:
    return {key: found[key] for key in ("waiting", "refused", "impossible") if key in found}
