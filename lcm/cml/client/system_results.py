"""Typed results of system calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lcm.cml.client.version import Version
from lcm.cml.json_values import MAX_WHOLE, Json, as_integer, as_mapping, as_number, as_text

MB = 1024 * 1024


@dataclass(frozen=True)
class SystemInformation:
    """Version of a controller, parsed and as text, and whether it is ready."""

    version: Version | None
    version_text: str
    ready: bool
    raw: Json = field(repr=False)

    @classmethod
    def read(cls, values: Json) -> SystemInformation:
        text = as_text(values.get("version"), 100) or ""
        return cls(Version.read(text), text, values.get("ready") is True, values)


@dataclass(frozen=True)
class SystemStats:
    """Capacity and usage of all computes of a controller."""

    cpu_count: int | None
    cpu_percent: float | None
    memory_total_mb: int | None
    memory_used_mb: int | None
    disk_total_mb: int | None
    disk_used_mb: int | None
    allocated_cpus: int | None
    allocated_memory_mb: int | None
    running_nodes: int | None
    raw: Json = field(repr=False)

    @classmethod
    def read(cls, values: Json) -> SystemStats:
        overall = as_mapping(values.get("all"))
        cpu, memory, disk = (as_mapping(overall.get(key)) for key in ("cpu", "memory", "disk"))
        domains = [
            as_mapping(as_mapping(as_mapping(compute).get("stats")).get("dominfo"))
            for compute in as_mapping(values.get("computes")).values()
        ]
        allocated_kb = _sum(domain.get("allocated_memory") for domain in domains)
        return cls(
            cpu_count=as_integer(cpu.get("count")),
            cpu_percent=as_number(cpu.get("percent")),
            memory_total_mb=_megabytes(memory.get("total")),
            memory_used_mb=_megabytes(memory.get("used")),
            disk_total_mb=_megabytes(disk.get("total")),
            disk_used_mb=_megabytes(disk.get("used")),
            allocated_cpus=_sum(domain.get("allocated_cpus") for domain in domains),
            allocated_memory_mb=None if allocated_kb is None else allocated_kb // 1024,
            running_nodes=_sum(domain.get("running_nodes") for domain in domains),
            raw=values,
        )


@dataclass(frozen=True)
class ResourcePoolUsage:
    """A resource pool. CPUs are in percent of a core, memory and storage in MB. No limit is None."""

    id: str
    label: str
    cpus_limit: int | None
    cpus_used: int | None
    ram_limit_mb: int | None
    ram_used_mb: int | None
    licenses_limit: int | None
    licenses_used: int | None
    storage_limit_mb: int | None
    storage_used_mb: int | None
    raw: Json = field(repr=False)

    @classmethod
    def read(cls, values: Json) -> ResourcePoolUsage:
        limit, usage = as_mapping(values.get("limit")), as_mapping(values.get("usage"))
        return cls(
            id=as_text(values.get("id")) or "",
            label=as_text(values.get("label")) or "",
            cpus_limit=as_integer(limit.get("cpus")),
            cpus_used=as_integer(usage.get("cpus")),
            ram_limit_mb=as_integer(limit.get("ram")),
            ram_used_mb=as_integer(usage.get("ram")),
            licenses_limit=as_integer(limit.get("licenses")),
            licenses_used=as_integer(usage.get("licenses")),
            storage_limit_mb=_from_gigabytes(limit.get("disk_space")),
            storage_used_mb=_from_gigabytes(usage.get("disk_space")),
            raw=values,
        )


def _sum(values: Iterable[object]) -> int | None:
    """Return the sum of the known values; None if there are none."""
    known = [number for value in values if (number := as_integer(value)) is not None]
    return sum(known) if known else None


def _from_gigabytes(value: object) -> int | None:
    gigabytes = as_integer(value, MAX_WHOLE // 1024)
    return None if gigabytes is None else gigabytes * 1024


def _megabytes(value: object) -> int | None:
    number = as_number(value)
    return None if number is None else int(number // MB)
