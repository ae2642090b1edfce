"""Simulated usage of nodes and links: profiles by definition, with reproducible noise."""

from __future__ import annotations

from dataclasses import dataclass

from lcm.cml.simulator.labs import SimLab, SimLink, SimNode
from lcm.cml.simulator.node_lifecycle import BOOTED, OPERATIONAL, RUNNING, STARTED
from lcm.cml.simulator.seeded_random import random_between, wave

LOAD_TAG = "load:"
WARM_UP_SECONDS = 60.0
MB_PER_GB = 1024
BYTES_PER_READ = 400


@dataclass(frozen=True)
class Profile:
    """CPU and memory percent when idle, and MB of disk after boot."""

    cpu: float
    ram: float
    disk_mb: int


DEFAULT_PROFILE = Profile(8.0, 45.0, 900)
PROFILES = {
    "iosv": Profile(3.0, 62.0, 180),
    "iosvl2": Profile(4.0, 58.0, 190),
    "csr1000v": Profile(32.0, 55.0, 1400),
    "cat8000v": Profile(36.0, 66.0, 1900),
    "iosxrv9000": Profile(48.0, 71.0, 9000),
    "nxosv9000": Profile(27.0, 74.0, 5200),
    "cat9000v": Profile(22.0, 61.0, 3800),
    "asav": Profile(21.0, 48.0, 700),
    "ftdv": Profile(38.0, 78.0, 12_000),
    "ubuntu": Profile(2.0, 34.0, 2600),
    "alpine": Profile(0.6, 21.0, 120),
    "server": Profile(0.4, 30.0, 40),
    "desktop": Profile(1.5, 41.0, 350),
}


def node_statistics(node: SimNode, now: float, *, seed: int, is_modern: bool) -> dict[str, object]:
    """Return the statistics of a node. Connectors and switches have only times."""
    figures: dict[str, object] = {"times": node.life.seconds_in(now)}
    if is_modern:
        figures["is_running"] = node.life.state(now) in RUNNING
    if node.has_no_vm or node.life.state(now) not in OPERATIONAL:
        return figures
    seconds = node.life.running_for(now)
    figures |= {
        "cpu_usage": round(_cpu(node, now, seconds, seed), 2),
        "block0_rd_bytes": int(3e7 + seconds * random_between(500, 5000, seed, node.id, "read")),
        "block0_wr_bytes": int(1e6 + seconds * random_between(200, 4000, seed, node.id, "write")),
    }
    if is_modern:
        figures |= {
            "ram_usage": round(_ram(node, seconds, seed), 1),
            "disk_usage": _disk(node, seconds, seed),
            "cpus": node.cpus,
            "cpu_limit": node.cpu_limit,
            "ram": node.ram,
        }
    return figures


def link_statistics(lab: SimLab, link: SimLink, now: float, *, seed: int) -> dict[str, int]:
    """Return the counters of a link, which grow while it is up."""
    seconds = min(lab.nodes[end.node_id].life.running_for(now) for end in (link.a, link.b))
    up = lab.link_state(link, now) == STARTED
    read = int(seconds * random_between(100, 20_000, seed, link.id, "read")) if up else 0
    written = int(seconds * random_between(100, 20_000, seed, link.id, "write")) if up else 0
    return {
        "readbytes": read,
        "readpackets": read // BYTES_PER_READ,
        "writebytes": written,
        "writepackets": written // BYTES_PER_READ,
        "drops": 0,
    }


def load_factor(node: SimNode) -> float:
    """Return the load of a node: the tag `load:150` means 150 % of its profile."""
    for tag in node.tags:
        percent = tag.removeprefix(LOAD_TAG)
        if tag.startswith(LOAD_TAG) and percent.isascii() and percent.isdigit():
            return min(int(percent[:5]), 1000) / 100
    return 1.0


def _profile(node: SimNode) -> Profile:
    return PROFILES.get(node.node_definition.lower(), DEFAULT_PROFILE)


def _cpu(node: SimNode, now: float, seconds: float, seed: int) -> float:
    """Return CPU percent: high while booting, then near the profile. Capped unless the node overuses."""
    moving = wave(seconds, seed, node.id, "cpu")
    if node.overuses:
        return 130 + 15 * moving
    if node.life.state(now) != BOOTED:
        return min(85 + 14 * moving, float(node.cpu_limit))
    busy = _profile(node).cpu * load_factor(node) * (1 + 0.5 * moving)
    return max(0.05, min(busy, node.cpu_limit + 0.3 * (1 + moving)))


def _ram(node: SimNode, seconds: float, seed: int) -> float:
    """Return memory percent, which grows to the profile while the node warms up."""
    if node.overuses:
        return 112 + 4 * wave(seconds, seed, node.id, "ram")
    warm = 0.4 + 0.6 * min(1.0, seconds / WARM_UP_SECONDS)
    held = _profile(node).ram * load_factor(node) * warm
    return max(1.0, min(held + 1.5 * wave(seconds, seed, node.id, "ram"), 99.5))


def _disk(node: SimNode, seconds: float, seed: int) -> int:
    """Return MB on disk: what the boot wrote plus slow growth."""
    room = (node.boot_disk_size + node.data_volume) * MB_PER_GB
    held = _profile(node).disk_mb * load_factor(node) + seconds * random_between(
        0.01, 0.2, seed, node.id, "disk"
    )
    return int(room * 1.05 if node.overuses else min(held, room))
