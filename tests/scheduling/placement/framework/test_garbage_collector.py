"""Pausing the garbage collector."""

from __future__ import annotations

import gc

from scheduling.placement.framework.garbage_collector import garbage_collector_paused

BLOCKS, CYCLES = 500, 100


def test_objects_in_cycles_are_collected_between_blocks_without_the_collector():
    """A worker runs a tick every few seconds and creates little garbage in between."""
    before = gc.get_stats()[1]["collections"]
    for _ in range(BLOCKS):
        with garbage_collector_paused():
            assert not gc.isenabled()
        for _ in range(CYCLES):
            cycle: list[object] = []
            cycle.append(cycle)
    assert gc.isenabled()
    assert gc.get_stats()[1]["collections"] > before
