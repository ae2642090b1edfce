"""Typed results of system calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AliasPath, Field

from lcm.cml.client.version import Version
from lcm.cml.json_values import (
    Integer,
    Json,
    Raw,
    TextOrEmpty,
    as_text,
    integer,
    number,
    read_model,
)
from lcm.domain.validation import MAX_WHOLE

MB = 1024 * 1024
# Both in MB: from bytes, and from whole gigabytes.
FromBytes = Annotated[int | None, number(lambda value: int(value // MB))]
FromGigabytes = Annotated[int | None, integer(MAX_WHOLE // 1024, times=1024)]


def _from(*path: str) -> Any:
    """Return the place of a value in the response."""
    return Field(validation_alias=AliasPath(*path))


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

    cpu_count: Annotated[Integer, _from("all", "cpu", "count")] = None
    memory_total_mb: Annotated[FromBytes, _from("all", "memory", "total")] = None
    disk_total_mb: Annotated[FromBytes, _from("all", "disk", "total")] = None
    raw: Raw = field(repr=False, default_factory=dict)

    @classmethod
    def read(cls, values: Json) -> SystemStats:
        return read_model(cls, values)


@dataclass(frozen=True)
class ResourcePoolUsage:
    """A resource pool. Storage is in MB. No limit is None."""

    id: TextOrEmpty = ""
    label: TextOrEmpty = ""
    licenses_limit: Annotated[Integer, _from("limit", "licenses")] = None
    licenses_used: Annotated[Integer, _from("usage", "licenses")] = None
    storage_limit_mb: Annotated[FromGigabytes, _from("limit", "disk_space")] = None
    storage_used_mb: Annotated[FromGigabytes, _from("usage", "disk_space")] = None
    raw: Raw = field(repr=False, default_factory=dict)

    @classmethod
    def read(cls, values: Json) -> ResourcePoolUsage:
        return read_model(cls, values)
