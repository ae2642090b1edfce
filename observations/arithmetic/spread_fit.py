"""Upper bound of the sessions that fit when their kernels may run on several workers.

Exact bin packing is too slow for a preview. No placement can exceed this bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from observations.arithmetic.impact import (
    LEASES,
    UNBOUND,
    FreeSpaces,
    IntArray,
    Packing,
    SessionDemand,
    WorkerSpace,
    rows_of,
)

# Only the largest kernels are fitted individually; the others count in the sums.
LARGEST = 16


def pack_spread(need: SessionDemand, spaces: Sequence[WorkerSpace]) -> Packing:
    """Return an upper bound of the sessions that fit on one pool's workers, and the limiting resource."""
    fleet = _FreeSpacesForKernels(need, spaces)
    if not fleet.workers.size:
        return Packing(0, len(spaces), LEASES if spaces else UNBOUND, {}, is_bound=True)
    requested = [(index, name) for index, name in enumerate(fleet.names) if fleet.demand[:, index].any()]
    limits = {name: fleet.alone(index) for index, name in requested} | {LEASES: fleet.by_leases()}
    bound = min(limits, key=lambda name: (limits[name], name == LEASES, name))
    sessions = limits[bound]
    for kernel in fleet.largest():
        places, by = fleet.places_for(kernel)
        if places < sessions:
            sessions, bound = places, by
    return Packing(sessions, len(spaces), bound, limits, is_bound=True)


class _FreeSpacesForKernels(FreeSpaces):
    """Workers with a free lease, and the demand of each kernel as a row."""

    def __init__(self, need: SessionDemand, spaces: Iterable[WorkerSpace]) -> None:
        super().__init__(need, (space for space in spaces if space.leases > 0))
        self.demand = rows_of(need.kernels, self.names)

    def alone(self, index: int) -> int:
        """Return the bound by one resource: by its sum, and by the places for kernels of each size."""
        demand = self.demand[:, index]
        kernels = self.demand[demand > 0]
        is_usable = (self.capacity >= kernels.min(axis=0)).all(axis=1)
        capacity, workers = self.capacity[is_usable, index], self.workers[is_usable]
        bound = int(capacity @ workers) // int(demand.sum())
        for size in sorted(set(kernels[:, index].tolist()), reverse=True)[:LARGEST]:
            bound = min(bound, int((capacity // size) @ workers) // int((demand >= size).sum()))
        return bound

    def by_leases(self) -> int:
        """Return the bound by leases: a session takes one lease on each of its workers."""
        requested, largest = self.demand.sum(axis=0), self.capacity.max(axis=0)
        if (largest[requested > 0] == 0).any():
            return 0
        leases = max((-(-int(w) // int(m)) for w, m in zip(requested, largest, strict=True) if w), default=1)
        return int(self.leases @ self.workers) // leases

    def largest(self) -> IntArray:
        kernels = np.unique(self.demand, axis=0)
        return kernels[kernels.any(axis=1)][::-1][:LARGEST]

    def places_for(self, kernel: IntArray) -> tuple[int, str]:
        """Return the bound by places for kernels at least this large, and the limiting resource."""
        is_requested = kernel > 0
        larger = int((self.demand >= kernel).all(axis=1).sum())
        fits = np.column_stack([self.capacity[:, is_requested] // kernel[is_requested], self.leases * larger])
        names = [
            *(name for name, requested in zip(self.names, is_requested, strict=True) if requested),
            LEASES,
        ]
        by = names[int(np.argmin(self.workers @ fits))]
        return int(fits.min(axis=1) @ self.workers) // larger, by
