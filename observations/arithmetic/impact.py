"""Impact of a proposal: sessions that fit, past sessions that would exceed it, and savings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lcm.domain.messages import Message, gettext, ngettext
from lcm.domain.resources import RESOURCE, RESOURCES
from observations.arithmetic.measures import RULES

IntArray = npt.NDArray[np.int64]

PORTS, LEASES, GPU = "ports", "leases", "gpu"
UNBOUND = "nothing"
# Names of resources and other limits inside a sentence.
LIMIT_NAMES = {
    **{each.name: each.plural for each in RESOURCES},
    PORTS: gettext("ports"),
    LEASES: gettext("leases"),
    UNBOUND: gettext("nothing"),
}


@dataclass(frozen=True)
class WorkerSpace:
    """Capacity of a worker: amounts in hundredths, ports and leases as integers."""

    amounts: Mapping[str, int]
    ports: int
    leases: int


@dataclass(frozen=True)
class SessionDemand:
    """Demand of one session, and of each kernel if they may run on several workers."""

    amounts: Mapping[str, int]
    ports: int
    kernels: Sequence[SessionDemand] = ()


@dataclass(frozen=True)
class Packing:
    """Number of sessions that workers hold, exact or as an upper bound, and the limiting resource."""

    sessions: int = 0
    workers: int = 0
    limited_by: str = UNBOUND
    by_limit: Mapping[str, int] = field(default_factory=dict)
    is_bound: bool = False

    @property
    def limit_label(self) -> str:
        return str(LIMIT_NAMES[self.limited_by])


class FreeSpaces:
    """Capacity of workers in the requested resources, ports last; workers of the same shape share a row."""

    def __init__(self, need: SessionDemand, spaces: Iterable[WorkerSpace]) -> None:
        self.names = [*need.amounts, PORTS]
        keyed = [(id(space), space) for space in spaces]
        shapes, counts = dict(keyed), Counter(key for key, _ in keyed)
        self.capacity = rows_of(shapes.values(), self.names).clip(0)
        self.leases = np.array([space.leases for space in shapes.values()], np.int64).clip(0)
        self.workers = np.array([counts[key] for key in shapes], np.int64)


def rows_of(items: Iterable[SessionDemand | WorkerSpace], names: Sequence[str]) -> IntArray:
    """Return a matrix with one row per item, ports last."""
    rows = [[*(row.amounts[name] for name in names[:-1]), row.ports] for row in items]
    return np.array(rows, np.int64).reshape(-1, len(names))


def pack(need: SessionDemand, spaces: Iterable[WorkerSpace]) -> Packing:
    """Fill each worker with this session alone; resources that are not requested limit nothing."""
    fleet = FreeSpaces(need, spaces)
    if not fleet.workers.size:
        return Packing()
    columns = zip(fleet.names, (*need.amounts.values(), need.ports), fleet.capacity.T, strict=True)
    limits = {name: capacity // units for name, units, capacity in columns if units > 0}
    limits[LEASES] = fleet.leases
    # If limits are equal, the first by name binds, leases last.
    names = sorted(limits, key=lambda name: (name == LEASES, name))
    stacked = np.stack([limits[name] for name in names])
    binding = np.bincount(stacked.argmin(axis=0), fleet.workers, len(names))
    return Packing(
        sessions=int(stacked.min(axis=0) @ fleet.workers),
        workers=int(fleet.workers.sum()),
        limited_by=min(zip(-binding, names, strict=True))[1],
        by_limit={name: int(limits[name] @ fleet.workers) for name in limits},
    )


def combine_packings(packings: Sequence[Packing]) -> Packing:
    """Combine the packings of several pools; the limit that binds most workers is named."""
    binding, by_limit = Counter[str](), Counter[str]()
    for packing in packings:
        binding[packing.limited_by] += packing.workers
        by_limit.update(packing.by_limit)
    return Packing(
        sessions=sum(packing.sessions for packing in packings),
        workers=sum(packing.workers for packing in packings),
        limited_by=min(binding, key=lambda name: (-binding[name], name), default=UNBOUND),
        by_limit=dict(by_limit),
        is_bound=any(packing.is_bound for packing in packings),
    )


@dataclass(frozen=True)
class Risk:
    """How often a proposal would have been exceeded; if never, the upper bound of the probability."""

    resource: str
    exceeding: int
    n: int
    upper_bound: float

    @property
    def share(self) -> float:
        return self.exceeding / self.n if self.n else 0.0

    @property
    def level(self) -> str:
        """Return the risk level.

        An exceedance that stops a lab is always high. One that slows a lab is high above 5 % of the sessions.
        """
        if not self.n:
            return "unknown"
        if self.exceeding and (RULES[self.resource].stops or self.share > 0.05):
            return "high"
        if self.exceeding:
            return "medium" if self.share > 0.02 else "low"
        return "medium" if self.upper_bound > 0.25 else "low"


def risk_of(resource: str, exceeding: int, n: int) -> Risk:
    """Return the risk; without an exceedance the 95 % upper bound of the probability is 1 − 0.05^(1/n)."""
    bound = 1 - 0.05 ** (1 / n) if n and not exceeding else 0.0
    return Risk(resource, exceeding, n, bound)


def highest_risk(risks: Sequence[Risk]) -> str:
    order = ("high", "medium", "unknown", "low")
    return min((risk.level for risk in risks), key=order.index, default="unknown")


def risk_text(risk: Risk) -> Message:
    """Return the risk as a sentence."""
    label = RESOURCE[risk.resource].label
    if not risk.n:
        return gettext("%(resource)s: not measured by any session.", resource=label)
    if not risk.exceeding:
        return ngettext(
            "%(resource)s: 0 of %(count)s session exceeded it (95 %% upper bound: %(bound)s %%).",
            "%(resource)s: 0 of %(count)s sessions exceeded it (95 %% upper bound: %(bound)s %%).",
            risk.n,
            resource=label,
            bound=f"{risk.upper_bound * 100:.0f}",
        )
    if RULES[risk.resource].stops:
        return ngettext(
            "%(resource)s: %(exceeding)s of %(count)s session would have run out.",
            "%(resource)s: %(exceeding)s of %(count)s sessions would have run out.",
            risk.n,
            resource=label,
            exceeding=risk.exceeding,
        )
    return ngettext(
        "%(resource)s: %(exceeding)s of %(count)s session would have been slowed.",
        "%(resource)s: %(exceeding)s of %(count)s sessions would have been slowed.",
        risk.n,
        resource=label,
        exceeding=risk.exceeding,
    )


@dataclass(frozen=True)
class Saving:
    """Capacity that recent sessions held without need, in hundredths of core-hours and GB-hours."""

    cpu: int
    memory: int


def saved(before: Mapping[str, int], after: Mapping[str, int], held_seconds: int) -> Saving:
    """Return hours held × the reduction per session; negative if the requirement rises."""

    def hours(resource: str) -> int:
        return (before[resource] - after[resource]) * held_seconds // 3600

    return Saving(hours("cpu_cores"), hours("memory_gb"))
