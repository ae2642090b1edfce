"""What a node has read and written on its disks, and received and sent on its links."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lcm.cml.results import LinkEnds, SimulationStats
from lcm.controller.metrics import TOTAL, Sample

# A node has a counter for each of its disks.
DISK = re.compile(r"block\d+_(rd|wr)_bytes")
DISK_METRICS = {"rd": "disk_read", "wr": "disk_write"}


def bytes_moved(
    kernel_id: str, node_id: str, links: Mapping[str, LinkEnds], stats: SimulationStats
) -> list[Sample]:
    """The counters of a node; what CML does not count has no sample."""
    totals: dict[str, float] = {}
    node = stats.nodes.get(node_id)
    for name, value in (node.figures if node else {}).items():
        if (found := DISK.fullmatch(name)) and value >= 0:
            metric = DISK_METRICS[found[1]]
            totals[metric] = totals.get(metric, 0.0) + value
    for link_id, ends in links.items():
        counted = stats.links.get(link_id, {})
        for metric, name in _directions(node_id, ends).items():
            if counted.get(name, -1) >= 0:
                totals[metric] = totals.get(metric, 0.0) + counted[name]
    return [Sample(kernel_id, metric, TOTAL, value) for metric, value in totals.items()]


def _directions(node_id: str, ends: LinkEnds) -> dict[str, str]:
    """CML counts a link from its first end; a link of a node with itself moves nothing in or out."""
    if ends.a == ends.b:
        return {}
    if node_id == ends.a:
        return {"net_rx": "readbytes", "net_tx": "writebytes"}
    if node_id == ends.b:
        return {"net_rx": "writebytes", "net_tx": "readbytes"}
    return {}
