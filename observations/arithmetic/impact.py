"""What a proposal would do: how many sessions fit where, who would have exceeded it, what is saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from observations.arithmetic.measures import RULES, text

PORTS, LEASES, GPU = "ports", "leases", "gpu"
WORDS = {
    "cpu_cores": "CPU",
    "memory_gb": "memory",
    "storage_gb": "storage",
    GPU: "GPUs",
    PORTS: "ports",
    LEASES: "leases",
}
UNBOUND = "nothing"


@dataclass(frozen=True)
class Room:
    """What a worker has of everything, in hundredths, and in whole ports and leases."""

    amounts: Mapping[str, int]
    ports: int
    leases: int


@dataclass(frozen=True)
class Need:
    """What one session takes."""

    amounts: Mapping[str, int]
    ports: int


@dataclass(frozen=True)
class Packing:
    """How many sessions workers hold, and what there is too little of for one more."""

    sessions: int = 0
    workers: int = 0
    bound_by: str = UNBOUND
    by_limit: Mapping[str, int] = field(default_factory=dict)

    @property
    def bound_word(self) -> str:
        return WORDS.get(self.bound_by, self.bound_by)


def fits(need: Need, room: Room) -> dict[str, int]:
    """How many sessions each thing would allow; what is not asked for limits nothing."""
    limits = {name: room.amounts[name] // units for name, units in need.amounts.items() if units > 0}
    if need.ports:
        limits[PORTS] = room.ports // need.ports
    limits[LEASES] = room.leases
    return {name: max(limit, 0) for name, limit in limits.items()}


def pack(need: Need, rooms: Iterable[Room]) -> Packing:
    """Each worker filled with this session alone. Workers of one shape are counted once."""
    shapes: Counter[tuple[tuple[int, ...], int, int]] = Counter()
    names = list(need.amounts)
    for room in rooms:
        shapes[(tuple(room.amounts[name] for name in names), room.ports, room.leases)] += 1
    total, binding, by_limit = 0, Counter[str](), Counter[str]()
    for (amounts, ports, leases), workers in shapes.items():
        limits = fits(need, Room(dict(zip(names, amounts, strict=True)), ports, leases))
        least = min(limits.values())
        total += least * workers
        for name, limit in limits.items():
            by_limit[name] += limit * workers
        binding[min(limits, key=lambda name: (limits[name], name == LEASES, name))] += workers
    bound = min(binding, key=lambda name: (-binding[name], name)) if binding else UNBOUND
    return Packing(total, sum(shapes.values()), bound, dict(by_limit))


@dataclass(frozen=True)
class Risk:
    """How often a proposal would not have been enough; when never, how often it may be at most."""

    resource: str
    exceeding: int
    n: int
    upper_bound: float

    @property
    def share(self) -> float:
        return self.exceeding / self.n if self.n else 0.0

    @property
    def level(self) -> str:
        """What stops a lab must not happen at all; what slows it may happen to one in twenty."""
        if not self.n:
            return "unknown"
        if self.exceeding and (RULES[self.resource].stops or self.share > 0.05):
            return "high"
        if self.exceeding:
            return "medium" if self.share > 0.02 else "low"
        return "medium" if self.upper_bound > 0.25 else "low"


def risk_of(resource: str, exceeding: int, n: int) -> Risk:
    """Without an exceedance the 95 % upper bound of its probability is 1 − 0.05^(1/n)."""
    bound = 1 - 0.05 ** (1 / n) if n and not exceeding else 0.0
    return Risk(resource, exceeding, n, bound)


def worst(risks: Sequence[Risk]) -> str:
    order = ("high", "medium", "unknown", "low")
    return min((risk.level for risk in risks), key=order.index, default="unknown")


def said(risk: Risk) -> str:
    """The risk in a sentence."""
    label = RULES[risk.resource].label
    if not risk.n:
        return f"{label}: no session has measured it."
    if risk.exceeding:
        effect = "would have run out" if RULES[risk.resource].stops else "would have been slowed"
        return f"{label}: {risk.exceeding} of {risk.n} sessions {effect}."
    bound = f"at most {risk.upper_bound * 100:.0f} % will, with 95 % certainty"
    return f"{label}: none of {risk.n} exceeded it; {bound}."


@dataclass(frozen=True)
class Saving:
    """What sessions of the last days held without need, in hundredths of an hour of a core or GB."""

    cpu: int
    memory: int

    @property
    def words(self) -> str:
        return f"{text(self.cpu)} core-hours and {text(self.memory)} GB-hours"


def saved(before: Mapping[str, int], after: Mapping[str, int], held_seconds: int) -> Saving:
    """Hours held × what each session asks for less; negative when it asks for more."""

    def hours(resource: str) -> int:
        return (before[resource] - after[resource]) * held_seconds // 3600

    return Saving(hours("cpu_cores"), hours("memory_gb"))
