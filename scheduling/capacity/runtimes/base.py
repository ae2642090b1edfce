"""What LCM needs of the place where worker instances run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar

# LCM ends an instance that no slot knows when it is this old.
ORPHAN_GRACE = timedelta(minutes=10)


class Category(StrEnum):
    """Why something did not work, and so what to do about it."""

    CAPACITY = "capacity"
    THROTTLED = "throttled"
    QUOTA = "quota"
    CONFIGURATION = "configuration"
    UNKNOWN = "unknown"


class RuntimeFailure(Exception):
    """An outside call failed; the category decides what the pool does next."""

    category: ClassVar[Category] = Category.UNKNOWN


class ResponseLost(RuntimeFailure):
    """Nobody knows whether it was done: look for it by its token before trying anything else."""


class CapacityRefused(RuntimeFailure):
    """There is no such instance to be had now: remember the offering, try the next."""

    category = Category.CAPACITY


class Throttled(RuntimeFailure):
    """Too many calls: the demand stays, no failure is counted."""

    category = Category.THROTTLED


class QuotaExceeded(RuntimeFailure):
    """The account may not have more."""

    category = Category.QUOTA


class Misconfigured(RuntimeFailure):
    """It will never work like this: the pool stops and says why."""

    category = Category.CONFIGURATION


class Market(StrEnum):
    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True)
class Offering:
    """One kind of instance that may be asked for."""

    name: str
    market: Market = Market.ON_DEMAND
    instance_type: str = ""
    zone: str = ""


@dataclass(frozen=True)
class LaunchRequest:
    """An instance for a slot. The token names the attempt: an answer that was lost is found by it."""

    token: str
    slot_id: str
    slot_name: str
    offering: Offering
    user_data: str = ""
    # For workers that exist already: the one that is meant for the slot, and those that other slots have.
    worker: str = ""
    taken: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ListedWorker:
    """A worker that exists already: where it answers, and what a slot is labelled with that gets it."""

    name: str
    endpoint: str
    labels: Mapping[str, str]


class InstanceState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"  # on its way to its end
    STOPPED = "stopped"  # switched off, but there: of no use until it is ended
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
    claimed: bool = True  # False: it does not say which LCM it belongs to, as those of old do not


@dataclass(frozen=True)
class Interruption:
    """A notice that an instance will be taken away; acknowledged once it has been written down."""

    instance_id: str
    deadline: datetime
    acknowledge: Callable[[], None] = field(default=lambda: None, compare=False)


@dataclass(frozen=True)
class Health:
    """What the worker on an instance says of itself."""

    ready: bool
    reason: str = ""
    version: str = ""


class RuntimeAdapter(ABC):
    """One pool's way to its instances. Knows nothing of the database's slots; raises `RuntimeFailure`."""

    listing_delay: ClassVar[timedelta] = timedelta(0)  # how long a new instance may be missing from the list
    calls_home: ClassVar[bool] = False  # True: a new worker has to reach LCM at PUBLIC_URL
    launches: ClassVar[bool] = True  # False: workers exist already, nothing is started or ended

    def __init__(self, pool: str, settings: Mapping[str, Any]) -> None:
        self.pool = pool
        self.settings = settings

    @property
    def most_slots(self) -> int | None:
        """How many slots can be filled at all; None: as many as the provider gives."""
        return None

    @classmethod
    @abstractmethod
    def problems(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        """What is wrong with a pool's runtime settings: the key and a sentence each."""

    @abstractmethod
    def offerings(self) -> Iterable[Offering]:
        """What may be asked for, best first."""

    @abstractmethod
    def launch(self, request: LaunchRequest) -> Instance:
        """Start an instance with our tags; the same token never starts two."""

    @abstractmethod
    def describe(self) -> Iterable[Instance]:
        """All instances tagged for this pool of this LCM, page by page; others are never seen.

        Those that name no LCM are listed as not claimed.
        """

    def claim(self, instance_ids: Sequence[str]) -> None:
        """Tag instances that were listed as not claimed as this LCM's."""
        raise NotImplementedError(f"{type(self).__name__} lists nothing that is not claimed")

    @abstractmethod
    def terminate(self, instance_id: str) -> None:
        """End an instance; one that is gone already is fine."""

    @abstractmethod
    def probe(self, instance: Instance) -> Health:
        """Ask the worker whether it can take sessions; never raises."""

    def labels_of(self, instance_id: str) -> dict[str, str]:
        """What a slot is labelled with when it gets this instance: the pool's `labels`."""
        return dict(self.settings.get("labels", {}))

    def workers(self) -> Sequence[ListedWorker]:
        """Workers that exist already: none but these can fill slots. Empty where instances are started."""
        return ()

    def interruptions(self) -> Iterable[Interruption]:
        """Notices that came since the last call."""
        return ()
