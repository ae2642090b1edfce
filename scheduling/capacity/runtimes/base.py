"""The interface between LCM and the provider of worker instances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Generic

from scheduling.options import AnyOptions, InvalidOptions, read_options

# LCM terminates an instance without a slot at this age.
ORPHAN_GRACE = timedelta(minutes=10)


class Category(StrEnum):
    """Category of a failure; it decides what the pool does next."""

    CAPACITY = "capacity"
    THROTTLED = "throttled"
    QUOTA = "quota"
    CONFIGURATION = "configuration"
    UNKNOWN = "unknown"


class RuntimeFailure(Exception):
    """A failed provider call; the category decides what the pool does next."""

    category: ClassVar[Category] = Category.UNKNOWN


class ResponseLost(RuntimeFailure):
    """The result is unknown: search for the instance by its token before any other request."""


class CapacityRefused(RuntimeFailure):
    """The provider has no capacity for this offering now: remember it and try the next."""

    category = Category.CAPACITY


class Throttled(RuntimeFailure):
    """Rate limited: demand stays, no failure is counted."""

    category = Category.THROTTLED


class QuotaExceeded(RuntimeFailure):
    """The account's quota is exhausted."""

    category = Category.QUOTA


class Misconfigured(RuntimeFailure):
    """A permanent failure: the pool stops and shows the reason."""

    category = Category.CONFIGURATION


class Market(StrEnum):
    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True)
class Offering:
    """One kind of instance that a pool may request."""

    name: str
    market: Market = Market.ON_DEMAND
    instance_type: str = ""
    zone: str = ""


@dataclass(frozen=True)
class LaunchRequest:
    """An instance for a slot. The token identifies the attempt, so that a lost response can be recovered."""

    token: str
    slot_id: str
    slot_name: str
    offering: Offering
    user_data: str = ""
    # For listed workers: the worker intended for the slot, and the workers of other slots.
    worker: str = ""
    workers_in_use: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ListedWorker:
    """An existing worker: its address, and the labels of the slot that gets it."""

    name: str
    endpoint: str
    labels: Mapping[str, str]


class InstanceState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"  # terminating
    STOPPED = "stopped"  # stopped, but not terminated: unusable
    GONE = "gone"


@dataclass(frozen=True)
class Instance:
    """An instance that carries this pool's tag."""

    id: str
    state: InstanceState
    slot_id: str
    token: str
    endpoint: str = ""
    market: Market = Market.ON_DEMAND
    launched_at: datetime | None = None
    claimed: bool = True  # False: the instance carries no owner tag, as older instances do


@dataclass(frozen=True)
class Interruption:
    """A notice that an instance will be interrupted; acknowledge it once it is recorded."""

    instance_id: str
    deadline: datetime
    acknowledge: Callable[[], None] = field(default=lambda: None, compare=False)


@dataclass(frozen=True)
class Health:
    """Health as the worker on an instance reports it."""

    ready: bool
    reason: str = ""
    version: str = ""


class RuntimeAdapter(ABC):
    """One pool's provider. It does not know the slots in the database; its calls raise `RuntimeFailure`."""

    listing_delay: ClassVar[timedelta] = timedelta(0)  # how long a new instance may be missing from the list
    needs_public_url: ClassVar[bool] = False  # True: a new worker calls LCM at PUBLIC_URL
    launches: ClassVar[bool] = True  # False: the workers exist already; none is started or terminated

    def __init__(self, pool: str, settings: Mapping[str, Any]) -> None:
        self.pool = pool
        self.settings = settings

    @property
    def most_slots(self) -> int | None:
        """Return how many slots can be filled at most; None if the provider sets no limit."""
        return None

    @classmethod
    @abstractmethod
    def problems(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        """Return the problems of a pool's runtime settings: a key and a sentence each."""

    @abstractmethod
    def offerings(self) -> Iterable[Offering]:
        """Return the offerings in order of preference."""

    @abstractmethod
    def launch(self, request: LaunchRequest) -> Instance:
        """Start an instance with LCM's tags; the same token never starts two."""

    @abstractmethod
    def describe(self) -> Iterable[Instance]:
        """Yield the instances tagged for this pool of this installation; instances of others are left out.

        Instances without an owner tag are returned with `claimed=False`.
        """

    def claim(self, instance_ids: Sequence[str]) -> None:
        """Add this installation's owner tag to instances without one."""
        raise NotImplementedError(f"{type(self).__name__} does not list untagged instances")

    @abstractmethod
    def terminate(self, instance_id: str) -> None:
        """Terminate an instance; succeed if it is gone already."""

    @abstractmethod
    def probe(self, instance: Instance) -> Health:
        """Return whether the worker can accept sessions; never raises."""

    def labels_of(self, instance_id: str) -> dict[str, str]:
        """Return the labels of a slot that gets this instance: the pool's `labels`."""
        return dict(self.settings.get("labels", {}))

    def workers(self) -> Sequence[ListedWorker]:
        """Return the listed workers, the only ones that can fill slots. Empty where instances are started."""
        return ()

    def interruptions(self) -> Iterable[Interruption]:
        """Return the interruption notices received since the last call."""
        return ()


class ConfiguredRuntime(RuntimeAdapter, Generic[AnyOptions]):
    """An adapter whose settings are a dataclass; created only from valid settings."""

    options_type: ClassVar[type[Any]]
    options: AnyOptions

    def __init__(self, pool: str, settings: Mapping[str, Any]) -> None:
        super().__init__(pool, settings)
        if problems := self.problems(settings):
            raise Misconfigured(" ".join(problems.values()))
        self.options = read_options(self.options_type, settings)

    @classmethod
    def problems(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        try:
            read_options(cls.options_type, settings)
        except InvalidOptions as error:
            return error.problems
        return {}
