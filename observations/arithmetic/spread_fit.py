"""Upper bound of the sessions that fit when their kernels may run on several workers.

Exact bin packing is too slow for a preview. No placement can exceed this bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from observations.arithmetic.impact import (
    LEASES,
    UNBOUND,
    Fleet,
    IntArray,
    Packing,
    SessionDemand,
    WorkerSpace,
    rows_of,
)

# Only the largest kernels are fitted individually; the others count in the sums.
LARGEST = 16


def pack_spread(need: SessionDemand, rooms: Sequence[WorkerSpace]) -> Packing:
    """Return an upper bound of the sessions that fit on one pool's workers, and the limiting resource."""
    fleet = _FleetForKernels(need, rooms)
    if not fleet.workers.size:
        return Packing(0, len(rooms), LEASES if rooms else UNBOUND, {}, is_bound=True)
    asked = [(place, name) for place, name in enumerate(fleet.names) if fleet.asked[:, place].any()]
    limits = {name: fleet.alone(place) for place, name in asked} | {LEASES: fleet.by_leases()}
    bound = min(limits, key=lambda name: (limits[name], name == LEASES, name))
    sessions = limits[bound]
    for kernel in fleet.largest():
        places, by = fleet.places_for(kernel)
        if places < sessions:
            sessions, bound = places, by
    return Packing(sessions, len(rooms), bound, limits, is_bound=True)


class _FleetForKernels(Fleet):
    """Workers with a free lease, and the demand of each kernel as a row."""

    def __init__(self, need: SessionDemand, rooms: Iterable[WorkerSpace]) -> None:
        super().__init__(need, (room for room in rooms if room.leases > 0))
        self.asked = rows_of(need.kernels, self.names)

    def alone(self, place: int) -> int:
        """Return the bound by one resource: by its sum, and by the places for kernels of each size."""
        asked = self.asked[:, place]
        takers = self.asked[asked > 0]
        open_to = (self.there >= takers.min(axis=0)).all(axis=1)
        there, workers = self.there[open_to, place], self.workers[open_to]
        found = int(there @ workers) // int(asked.sum())
        for size in sorted(set(takers[:, place].tolist()), reverse=True)[:LARGEST]:
            found = min(found, int((there // size) @ workers) // int((asked >= size).sum()))
        return found

    def by_leases(self) -> int:
        """Return the bound by leases: a session takes one lease on each of its workers."""
        whole, most = self.asked.sum(axis=0), self.there.max(axis=0)
        if (most[whole > 0] == 0).any():
            return 0
        each = max((-(-int(w) // int(m)) for w, m in zip(whole, most, strict=True) if w), default=1)
        return int(self.leases @ self.workers) // each

    def largest(self) -> IntArray:
        kernels = np.unique(self.asked, axis=0)
        return kernels[kernels.any(axis=1)][::-1][:LARGEST]

    def places_for(self, kernel: IntArray) -> tuple[int, str]:
        """Return the bound by places for kernels at least this large, and the limiting resource."""
        takes = kernel > 0
        larger = int((self.asked >= kernel).all(axis=1).sum())
        fits = np.column_stack([self.there[:, takes] // kernel[takes], self.leases * larger])
        names = [*(name for name, taken in zip(self.names, takes, strict=True) if taken), LEASES]
        by = names[int(np.argmin(self.workers @ fits))]
        return int(fits.min(axis=1) @ self.workers) // larger, by
