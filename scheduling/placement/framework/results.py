"""Results of a cycle as plain values and as text, for replays, dry runs and scenario tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from scheduling.placement.framework.amounts import UNIT
from scheduling.placement.framework.cycle import Cycle, Verdict, VerdictOutcome
from scheduling.placement.framework.explanation import clipped_text


def as_result(cycle: Cycle) -> dict[str, Any]:
    """Return plain values: verdicts in queue order, evictions, and failed plugins."""
    return {
        "verdicts": [_verdict(cycle, verdict) for verdict in cycle.verdicts],
        "evictions": [
            {"victim": eviction.victim.id, "for": eviction.for_job.id, "reason": eviction.reason}
            for eviction in cycle.evictions
        ],
        "failures": dict(sorted(cycle.ssn.failures.by_plugin.items())),
        "clipped_scores": dict(sorted(cycle.ssn.failures.clipped.items())),
    }


def _verdict(cycle: Cycle, verdict: Verdict) -> dict[str, Any]:
    result: dict[str, Any] = {
        "job": verdict.job.id,
        "position": verdict.position,
        "outcome": verdict.outcome.value,
    }
    if verdict.parts:
        result["nodes"] = _nodes(cycle, verdict)
        if devices := _devices(cycle, verdict):
            result["devices"] = devices
    if verdict.scores:
        result["scores"] = {plugin: round(score, 4) for plugin, score in verdict.scores.items()}
    if verdict.why is not None:
        result["why"] = verdict.why.message
        result["reasons"] = [asdict(count) for count in (*verdict.why.counts, *verdict.why.failures)]
    return result


def _name(cycle: Cycle, key: str) -> str:
    table = cycle.ssn.nodes
    return table.rows[table.index[key]].name


def _nodes(cycle: Cycle, verdict: Verdict) -> dict[str, list[str]]:
    return {_name(cycle, part.node): [task.name for task in part.tasks] for part in verdict.parts}


def _devices(cycle: Cycle, verdict: Verdict) -> dict[str, list[list[float]]]:
    return {
        _name(cycle, part.node): [[device, amount / UNIT] for device, amount in part.devices]
        for part in verdict.parts
        if part.devices
    }


def as_lines(cycle: Cycle) -> Iterator[str]:
    """Format one line per job, then evictions, then failures."""
    for verdict in cycle.verdicts:
        yield f"{verdict.position:>6}  {verdict.job.label:<36}  {_outcome(cycle, verdict)}"
    for eviction in cycle.evictions:
        yield f"  stop  {eviction.victim.label:<36}  {eviction.reason}"
    for plugin, error in sorted(cycle.ssn.failures.by_plugin.items()):
        yield f"failed  {plugin:<36}  {error}"
    for plugin, score in sorted(cycle.ssn.failures.clipped.items()):
        yield f"  clip  {plugin:<36}  {clipped_text(score)}"
    counts = dict.fromkeys(VerdictOutcome, 0)
    for verdict in cycle.verdicts:
        counts[verdict.outcome] += 1
    summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    yield f"{summary or '0 waiting'}; {len(cycle.evictions)} to stop"


def _outcome(cycle: Cycle, verdict: Verdict) -> str:
    if verdict.parts:
        return f"{verdict.outcome} on {', '.join(_name(cycle, part.node) for part in verdict.parts)}"
    return f"{verdict.outcome}: {verdict.why.message}" if verdict.why else verdict.outcome.value
