"""`python -m tests.benchmarks.replay`: replay a trace with the recommendations applied.

The trace is generated from a seed: definitions whose labs use a log-normal share of their nodes' capacity,
some with bursts, some with a step change half-way. Each starts with a guessed requirement. After 22 sessions
the recommendation is applied once; later sessions are compared with both. The replay uses the arithmetic of
the review and computes no statistic of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import mean

from observations.arithmetic.histogram import Digest, day_of
from observations.arithmetic.impact import SessionDemand, WorkerSpace, pack, risk_of
from observations.arithmetic.measures import CPU, MEASURED, MEMORY, RULES, STORAGE, USED, round_up
from observations.arithmetic.recommendation import propose
from observations.arithmetic.statistics import summarize

DEFINITIONS, SESSIONS, LEARN, SEED = 200, 60, 22, 7
BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
WORKER = WorkerSpace({CPU: 48_00, MEMORY: 192_00, STORAGE: 2_000_00, "gpu": 0}, ports=6_000, leases=1_000)

Use = dict[str, int]


@dataclass(frozen=True)
class ReplayDefinition:
    """A definition: its initial requirement and the usage of its sessions, in order."""

    guess: Use
    sessions: list[tuple[datetime, Use]]
    steps: bool


@dataclass
class ReplayOutcome:
    """Result of one way to set requirements, over all sessions after the first 22."""

    slack: list[float] = field(default_factory=list)
    exceeded: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MEASURED, 0))
    sessions: int = 0
    fit: list[int] = field(default_factory=list)

    def add(self, required: Use, used: Sequence[Use]) -> None:
        self.fit.append(pack(SessionDemand({**required, "gpu": 0}, 4), [WORKER]).sessions)
        for use in used:
            self.sessions += 1
            self.slack.append(max(required[CPU] - use[CPU], 0) / required[CPU])
            for name in MEASURED:
                self.exceeded[name] += use[name] > required[name]

    def share(self, name: str) -> float:
        return self.exceeded[name] / self.sessions


def make_trace(
    seed: int = SEED, definitions: int = DEFINITIONS, sessions: int = SESSIONS
) -> list[ReplayDefinition]:
    chance = Random(seed)
    return [_lab(chance, sessions) for _ in range(definitions)]


def _lab(chance: Random, count: int) -> ReplayDefinition:
    """Generate a definition: 40 % guess far too much, 10 % have a step change, 20 % have bursts."""
    middle = {CPU: chance.uniform(1, 12), MEMORY: chance.uniform(2, 48), STORAGE: chance.uniform(10, 200)}
    spread = {
        CPU: chance.uniform(0.05, 0.2),
        MEMORY: chance.uniform(0.02, 0.08),
        STORAGE: chance.uniform(0.02, 0.1),
    }
    wrong = chance.choice((1.1, 1.5, 2.0, 2.5, 0.95))
    guess = {name: round_up(int(middle[name] * wrong * 100), RULES[name].step) for name in MEASURED}
    steps, bursts = chance.random() < 0.1, chance.random() < 0.2
    rows = []
    for index in range(count):
        factor = 1.25 if steps and index >= count // 2 else 1.0
        burst = 1.4 if bursts and chance.random() < 0.03 else 1.0
        use = {
            name: int(middle[name] * chance.lognormvariate(0, spread[name]) * factor * 100)
            for name in MEASURED
        }
        rows.append((BEGIN + timedelta(hours=8 * index), {**use, CPU: int(use[CPU] * burst)}))
    return ReplayDefinition(guess, rows, steps)


def recommend(seen: Sequence[tuple[datetime, Use]]) -> Use:
    """Return what the review recommends after these sessions."""
    digest = Digest()
    for at, use in seen:
        digest.add({(name, USED): use[name] for name in MEASURED}, day_of(at))
    found = {name: summarize(digest.of(name, USED), seen[-1][1][name]) for name in MEASURED}
    return {
        name: propose(name, "recommended", summary, USED).value
        for name, summary in found.items()
        if summary is not None
    }


@dataclass(frozen=True)
class ReplayResult:
    before: ReplayOutcome
    after: ReplayOutcome
    memory_steps: int
    stated_risk: float


def replay(trace: Sequence[ReplayDefinition], learn: int = LEARN) -> ReplayResult:
    """Compare the guess and the recommendation with the usage that followed."""
    before, after, memory_steps = ReplayOutcome(), ReplayOutcome(), 0
    for lab in trace:
        later = [use for _, use in lab.sessions[learn:]]
        required = recommend(lab.sessions[:learn])
        before.add(lab.guess, later)
        after.add(required, later)
        memory_steps += sum(use[MEMORY] > required[MEMORY] for use in later) if lab.steps else 0
    return ReplayResult(before, after, memory_steps, risk_of(MEMORY, 0, learn).upper_bound)


def report(result: ReplayResult) -> str:
    """Return the result as a table for the documentation."""
    before, after = result.before, result.after
    rows = [
        ("mean CPU slack", _percent(mean(before.slack)), _percent(mean(after.slack)), "≤ 31 %"),
        ("CPU exceeded", _percent(before.share(CPU)), _percent(after.share(CPU)), "≤ 5 %"),
        (
            "memory exceeded",
            _percent(before.share(MEMORY)),
            _percent(after.share(MEMORY)),
            f"≤ {_percent(result.stated_risk)}, the stated risk",
        ),
        (
            "of these, after a step change",
            "",
            f"{result.memory_steps:,} of {after.exceeded[MEMORY]:,}",
            "",
        ),
        ("storage exceeded", _percent(before.share(STORAGE)), _percent(after.share(STORAGE)), ""),
        ("sessions a worker, mean", f"{mean(before.fit):.1f}", f"{mean(after.fit):.1f}", ""),
    ]
    lines = ["| | guessed | recommended after 22 sessions | aim |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else SEED
    print(f"{DEFINITIONS} definitions × {SESSIONS} sessions, seed {seed}\n")
    print(report(replay(make_trace(seed))))


if __name__ == "__main__":
    main()
