"""Typed results of system calls."""

from __future__ import annotations

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
    """Capacity of all computes of a controller."""

    cpu_count: int | None
    memory_total_mb: int | None
    disk_total_mb: int | None
    raw: Json = field(repr=False)

    @classmethod
    def read(cls, values: Json) -> SystemStats:
        overall = as_mapping(values.get("all"))
        cpu, memory, disk = (as_mapping(overall.get(key)) for key in ("cpu", "memory", "disk"))
        return cls(
            cpu_count=as_integer(cpu.get("count")),
            memory_total_mb=_megabytes(memory.get("total")),
            disk_total_mb=_megabytes(disk.get("total")),
            raw=values,
        )


@dataclass(frozen=True)
class ResourcePoolUsage:
    """A resource pool. Storage is in MB. No limit is None."""

    id: str
    label: str
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
            licenses_limit=as_integer(limit.get("licenses")),
            licenses_used=as_integer(usage.get("licenses")),
            storage_limit_mb=_from_gigabytes(limit.get("disk_space")),
            storage_used_mb=_from_gigabytes(usage.get("disk_space")),
            raw=values,
        )


def _from_gigabytes(value: object) -> int | None:
    gigabytes = as_integer(value, MAX_WHOLE // 1024)
    return None if gigabytes is None else gigabytes * 1024


def _megabytes(value: object) -> int | None:
    number = as_number(value)
    return None if number is None else int(number // MB)
