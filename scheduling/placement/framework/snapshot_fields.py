"""Fields of a snapshot document, each with a message for invalid values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduling.options import (
    REQUIRED,
    InvalidOptions,
    choice,
    flag,
    number,
    rows,
    setting,
    suggestion,
    text,
    texts_by_name,
    wrong_type,
)  # fmt: skip
from scheduling.placement.framework.amounts import NOTHING, RESOURCES, UNIT, Amounts, amounts_of, in_units
from scheduling.placement.framework.model import Gang

MAX_VALUE = 1e9
SESSIONS = "sessions"
LIMITED = (*RESOURCES, SESSIONS)
Shares = tuple[tuple[int, int], ...]


def amounts(default: Any = NOTHING) -> Any:
    """Declare a mapping of resource to amount; missing resources are 0."""

    def read(key: str, value: Any) -> Amounts:
        return amounts_of(_numbers(key, value, RESOURCES))

    return setting(default, read)


def quota() -> Any:
    """Declare a mapping of resource, or sessions, to a queue's maximum."""

    def read(key: str, value: Any) -> dict[str, int]:
        found = _numbers(key, value, LIMITED)
        return {name: in_units(each) if name != SESSIONS else int(each) for name, each in found.items()}

    return field(default_factory=dict, metadata={"read": read})


def whole_number(default: int | None, low: int, high: int) -> Any:
    """Declare an integer within bounds; a default of None makes it optional."""

    def read(key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise wrong_type(key, value, f"a whole number from {low} to {high}")
        return value

    return setting(default, read)


def gpus() -> Any:
    """Declare the capacity of each GPU: 1 is a whole GPU."""

    def read(key: str, value: Any) -> tuple[int, ...]:
        if not isinstance(value, list) or not all(_is_number(each) and 0 < each <= 1 for each in value):
            raise wrong_type(key, value, "a list with a number above 0 and up to 1 for each GPU")
        return tuple(in_units(each) for each in value)

    return setting((), read)


def shares() -> Any:
    """Declare pairs of a GPU index and the share that is held."""

    def read(key: str, value: Any) -> Shares:
        if not isinstance(value, list) or not all(_is_share(each) for each in value):
            raise wrong_type(key, value, "a list of pairs: the place of a GPU, how much of it")
        return tuple((place, in_units(amount)) for place, amount in value)

    return setting((), read)


def timestamp() -> Any:
    """Declare seconds since the epoch; optional."""
    return number(None, -1e12, 1e12)


def _numbers(key: str, value: Any, known: tuple[str, ...]) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise wrong_type(key, value, "an object of names and numbers")
    problems = {}
    for name, each in value.items():
        path = f"{key}.{name}"
        if name not in known:
            problems[path] = f"“{path}” is no resource{suggestion(name, known)}"
        elif not _is_number(each) or not 0 <= each < MAX_VALUE:
            problems |= wrong_type(path, each, "a number of zero or more").problems
    if problems:
        raise InvalidOptions(problems)
    return dict(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], int)
        and not isinstance(value[0], bool)
        and value[0] >= 0
        and _is_number(value[1])
        and 0 < value[1] <= 1
    )


@dataclass(frozen=True, kw_only=True)
class NodeRow:
    """A slot in a snapshot document."""

    name: str = text()
    capacity: tuple[int, int, int, int] = amounts(REQUIRED)
    id: str = text("")
    system: str = text("")
    labels: Mapping[str, str] = texts_by_name()
    spot: bool = flag(False)
    cordoned: bool = flag(False)
    until: float | None = timestamp()
    max_leases: int = whole_number(1_000, 0, 1_000_000)
    ports: int = whole_number(6_000, 0, 65_536)
    leaked: int = whole_number(0, 0, 65_536)
    devices: tuple[int, ...] = gpus()
    taken: tuple[int, int, int, int] = amounts()
    taken_leases: int = whole_number(0, 0, 1_000_000)
    taken_devices: tuple[tuple[int, int], ...] = shares()


@dataclass(frozen=True, kw_only=True)
class QueueRow:
    """A domain, project or user in a snapshot document."""

    name: str = text()
    parent: str = text("")
    weight: float = number(1, 0, MAX_VALUE)
    factor: float = number(1, 0, MAX_VALUE)
    quota: Mapping[str, int] = quota()
    joins: bool = flag(False)


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """A kernel in a snapshot document; with a node if it runs."""

    request: tuple[int, int, int, int] = amounts(REQUIRED)
    name: str = text("")
    ports: int = whole_number(0, 0, 65_536)
    node: str = text("")
    devices: tuple[tuple[int, int], ...] = shares()


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """A reservation in a snapshot document."""

    id: str = text()
    queue: str = text()
    tasks: tuple[TaskRow, ...] = rows(TaskRow)
    owner: str = text("")
    name: str = text("")
    priority: int = whole_number(50, -1_000_000, 1_000_000)
    preemptible: bool = flag(False)
    created: float = number(0, -1e12, 1e12)
    gang: Gang = choice(Gang, Gang.TOGETHER)  # noqa: RUF009 - it makes a field
    system: str = text("")
    labels: Mapping[str, str] = texts_by_name()
    starts: float = number(0, -1e12, 1e12)
    ends: float | None = timestamp()
    held_on: str = text("")
    verdict: str = text("")
    leaving: bool = flag(False)


def gpu_sum(row: NodeRow) -> float:
    return sum(row.devices) / UNIT
