"""System information, statistics and resource pools of a simulated controller."""

from __future__ import annotations

from lcm.cml.simulator.controller import SimulatedController
from lcm.cml.simulator.seeded_random import random_uuid, wave

MB = 1024 * 1024
GB = 1024 * MB
OWN_MEMORY_MB = 2600
OWN_DISK_GB = 70


def information(controller: SimulatedController) -> dict[str, object]:
    """Return version and readiness; the only call without log-in."""
    return {
        "version": controller.options.version_text,
        "ready": controller.is_ready,
        "allow_ssh_pubkey_auth": False,
        "oui": "52:54:00:00:00:00",
    }


def stats(controller: SimulatedController) -> dict[str, object]:
    """Return capacity and usage of the single compute."""
    nodes = controller.running_nodes()
    memory = _amounts(controller.options.memory_mb * MB, (OWN_MEMORY_MB + sum(n.ram for n in nodes)) * MB)
    disk = _amounts(
        controller.options.disk_gb * GB, (OWN_DISK_GB + sum(node.boot_disk_size for node in nodes)) * GB
    )
    allocated = sum(node.cpus for node in nodes)
    busy = 4 + 2 * wave(controller.now, controller.compute_id, "busy")
    percent = min(100.0, busy + 30 * allocated / max(controller.options.cpus, 1))
    cpu = {"count": int(controller.options.cpus), "percent": percent}
    compute = {
        "hostname": controller.name or "cml-controller",
        "is_controller": True,
        "stats": {
            "cpu": cpu
            | {"model": "Simulated CPU", "hyperthreading": False, "predicted": allocated, "load": [0.1] * 3},
            "memory": memory,
            "disk": disk,
            "dominfo": {
                "total_nodes": sum(len(lab.nodes) for lab in controller.labs.values()),
                "total_orphans": 0,
                "running_nodes": len(nodes),
                "running_orphans": 0,
                "allocated_cpus": allocated,
                "allocated_memory": sum(node.ram for node in nodes) * 1024,
            },
        },
    }
    return {
        "computes": {controller.compute_id: compute},
        "all": {"cpu": cpu, "memory": memory, "disk": disk},
        "controller": {"disk": disk},
    }


def resource_pool(controller: SimulatedController) -> dict[str, object]:
    """Return the single pool that contains all nodes."""
    return {
        "id": random_uuid(controller.options.seed, controller.name, "pool"),
        "label": "pool",
        "description": None,
        "template": None,
        "licenses": None,
        "ram": controller.options.memory_mb,
        "cpus": int(controller.options.cpus * 100),
        "disk_space": None,
        "external_connectors": None,
        "users": [],
        "user_pools": [],
    }


def resource_pool_usage(controller: SimulatedController) -> dict[str, object]:
    """Return limits and usage of the pool. CPUs are in percent of a core."""
    pool, nodes = resource_pool(controller), controller.running_nodes()
    limits = {key: pool[key] for key in ("licenses", "ram", "cpus", "disk_space", "external_connectors")}
    usage = {
        "licenses": sum(not node.has_no_vm for node in nodes),
        "ram": sum(node.ram for node in nodes),
        "cpus": sum(node.cpus * node.cpu_limit for node in nodes),
        "disk_space": sum(node.boot_disk_size + node.data_volume for node in nodes),
        "external_connectors": [],
    }
    return {"id": pool["id"], "label": pool["label"], "description": None, "limit": limits, "usage": usage}


def _amounts(total: float, used: float) -> dict[str, float]:
    return {"used": float(used), "free": float(max(total - used, 0)), "total": float(total)}
