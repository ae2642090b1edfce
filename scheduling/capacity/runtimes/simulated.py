"""The `simulated` runtime: instances as database rows, each with a simulated CML and configurable faults."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, ClassVar

import httpx
from django.conf import settings as settings_of_django
from django.db.models import QuerySet
from django.utils import timezone

from lcm.cml.simulator.admin_client import SimulatorAdmin
from lcm.cml.simulator.options import OptionError
from scheduling.capacity.runtimes.base import (
    CapacityRefused,
    ConfiguredRuntime,
    Health,
    Instance,
    InstanceState,
    Interruption,
    LaunchRequest,
    Market,
    Misconfigured,
    Offering,
    ResponseLost,
    Throttled,
)
from scheduling.capacity.runtimes.health import probe_cml
from scheduling.models import Pool, SimulatedInstance
from scheduling.options import Options, choice, flag, number, rows, text, texts, texts_by_name

NOTICE = timedelta(seconds=120)
RETENTION = timedelta(days=1)
VERSION = "2.9.1+simulated"
HEADROOM = 2


@dataclass(frozen=True)
class SimulatedOffering(Options):
    name: Annotated[str, text(longest=100)]
    market: Annotated[Market, choice(Market)] = Market.ON_DEMAND


@dataclass(frozen=True)
class SimulatedOptions(Options):
    """Durations, offerings and faults of the simulation."""

    launch_seconds: Annotated[float, number(0, 3600)] = 3
    """Time until an instance runs."""
    boot_seconds: Annotated[float, number(0, 3600)] = 5
    """Time until the CML of an instance is ready."""
    call_seconds: Annotated[float, number(0, 60)] = 0
    """Duration of a call to the provider."""
    refuse_percent: Annotated[float, number(0, 100)] = 0
    """Share of launches that fail for lack of capacity."""
    refuse_offerings: Annotated[tuple[str, ...], texts()] = ()
    """Offerings whose launches fail for lack of capacity."""
    throttle_percent: Annotated[float, number(0, 100)] = 0
    """Share of launches that are throttled."""
    broken: Annotated[bool, flag()] = False
    """All calls to the provider fail."""
    vanish_after_seconds: Annotated[float, number(0, 86_400)] | None = None
    """Time after which an instance disappears. Not set: never."""
    interrupt_after_seconds: Annotated[float, number(0, 86_400)] | None = None
    """Time after which a spot instance is interrupted. Not set: never."""
    spot: Annotated[bool, flag()] = False
    """Offer a spot instance too, unless `offerings` lists offerings."""
    labels: Annotated[Mapping[str, str], texts_by_name()] = field(default_factory=dict)
    cml_version: Annotated[str, text("2.9 or 2.10", pattern="2.9|2.10")] = "2.10"
    lab_boot_seconds: Annotated[float, number(0, 3600)] = 5
    """Time until the nodes of a lab run."""
    cml_latency_seconds: Annotated[float, number(0, 60)] = 0
    """Duration of a call to CML."""
    edit_percent: Annotated[float, number(0, 100)] = 0
    """Share of labs that their user edits."""
    overuse_percent: Annotated[float, number(0, 100)] = 0
    """Share of labs that use more than they require."""
    offerings: Annotated[tuple[SimulatedOffering, ...], rows(required=False)] = ()

    def problems(self) -> dict[str, str]:
        names = [each.name for each in self.all_offerings()]
        if len(set(names)) < len(names):
            return {"offerings": "Two offerings have the same name."}
        unknown = [name for name in self.refuse_offerings if name not in names]
        if unknown:
            return {"refuse_offerings": f"There is no offering “{unknown[0]}” that could be refused."}
        return {}

    def simulator(self) -> dict[str, object]:
        """Return the settings of an instance's CML simulator."""
        return {
            "version": self.cml_version,
            "boot_seconds": self.lab_boot_seconds,
            "latency_seconds": self.cml_latency_seconds,
            "edit_percent": self.edit_percent,
            "overuse_percent": self.overuse_percent,
        }

    def all_offerings(self) -> tuple[SimulatedOffering, ...]:
        if self.offerings:
            return self.offerings
        spot = (SimulatedOffering("sim-large-spot", Market.SPOT),) if self.spot else ()
        return (*spot, SimulatedOffering("sim-large", Market.ON_DEMAND))


class SimulatedRuntime(ConfiguredRuntime[SimulatedOptions]):
    """Keeps its instances in the database, so that all processes see the same ones.

    With `SIMULATOR_URL` each instance runs a CML in that simulator process; without it instances are only
    rows.

    Percentage faults depend only on the attempt's token and the offering, so a repeated call gives the same
    result. Replace `clock` and `sleep` to control time.
    """

    options_type: ClassVar[type[SimulatedOptions]] = SimulatedOptions

    def __init__(self, pool: str, settings: Mapping[str, Any]) -> None:
        super().__init__(pool, settings)
        self.clock: Callable[[], datetime] = timezone.now
        self.sleep: Callable[[float], None] = time.sleep
        url = settings_of_django.CONFIG["SIMULATOR_URL"]
        self.simulators = SimulatorControl(url) if url else None

    def offerings(self) -> Iterable[Offering]:
        return [Offering(each.name, each.market) for each in self.options.all_offerings()]

    def launch(self, request: LaunchRequest) -> Instance:
        if self.options.call_seconds:
            self.sleep(self.options.call_seconds)
        self._inject_faults(request)
        row, _ = SimulatedInstance.objects.get_or_create(
            token=request.token,
            defaults={
                "id": f"sim-{_hash(request.token).hex()[:16]}",
                "pool": self.pool,
                "slot_id": request.slot_id,
                "market": request.offering.market,
                "launched_at": self.clock(),
            },
        )
        if self.simulators and row.ended_at is None:
            self.simulators.ensure([row.id], self._simulator())
        return self._instance(row)

    def describe(self) -> Iterable[Instance]:
        instances = self._live_instances()
        if self.simulators:
            # A simulator that restarts without its file has lost the instances; create them again, without
            # labs.
            self.simulators.ensure([row.id for row in instances], self._simulator())
        return [self._instance(row) for row in instances]

    def terminate(self, instance_id: str) -> None:
        now = self.clock()
        if self.simulators and self._rows().filter(pk=instance_id).exists():
            self.simulators.remove([instance_id])
        self._rows().filter(pk=instance_id, ended_at=None).update(ended_at=now)
        self._rows().filter(ended_at__lt=now - RETENTION).delete()

    def probe(self, instance: Instance) -> Health:
        """Return health from the last `describe`, without a query: probes run in many threads at once."""
        if instance.launched_at is None or instance.state == InstanceState.GONE:
            return Health(False, f"{instance.id} is gone.")
        ready_after = max(self.options.launch_seconds, self.options.boot_seconds)
        if not self._is_due(instance.launched_at, ready_after):
            return Health(False, f"{instance.id} is still starting.")
        if self.simulators:
            return probe_cml(instance.endpoint)
        return Health(True, version=VERSION)

    def interruptions(self) -> Iterable[Interruption]:
        return [
            Interruption(row.id, row.interrupted_at + NOTICE, partial(self._acknowledge, row.id))
            for row in self._live_instances()
            if row.interrupted_at and not row.notice_taken
        ]

    def interrupt(self, instance_id: str) -> None:
        """Send an interruption notice to an instance; it terminates two minutes later."""
        self._rows().filter(pk=instance_id, ended_at=None, interrupted_at=None).update(
            interrupted_at=self.clock()
        )

    def _inject_faults(self, request: LaunchRequest) -> None:
        offering = request.offering.name
        if self.options.broken:
            raise Misconfigured("The simulated runtime is set to “broken”.")
        if _draw("throttle", request) < self.options.throttle_percent:
            raise Throttled("The simulated runtime is rate limited.")
        if (
            offering in self.options.refuse_offerings
            or _draw("refuse", request) < self.options.refuse_percent
        ):
            raise CapacityRefused(f"There is no capacity for {offering} at the moment.")

    def _simulator(self) -> dict[str, object]:
        """Return the settings of a CML twice the size of the pool's workers: LCM's limits apply first."""
        size = Pool.objects.filter(name=self.pool).values("cpu_cores", "memory_gb", "storage_gb").first()
        if size is None:
            return self.options.simulator()
        return {
            **self.options.simulator(),
            "cpus": float(size["cpu_cores"]) * HEADROOM,
            "memory_mb": int(size["memory_gb"] * 1024 * HEADROOM),
            "disk_gb": int(size["storage_gb"] * HEADROOM),
        }

    def _rows(self) -> QuerySet[SimulatedInstance]:
        return SimulatedInstance.objects.filter(pool=self.pool)

    def _live_instances(self) -> list[SimulatedInstance]:
        """Return this pool's instances after applying every event that is due."""
        now = self.clock()
        rows = list(self._rows().filter(ended_at=None).order_by("launched_at", "id"))
        ended = {row.id for row in rows if self._has_ended(row)}
        if ended:
            self._rows().filter(pk__in=ended, ended_at=None).update(ended_at=now)
            if self.simulators:
                self.simulators.remove(ended)
        instances = [row for row in rows if row.id not in ended]
        noticed = [
            row
            for row in instances
            if row.interrupted_at is None
            and self._is_due(row.launched_at, self.options.interrupt_after_seconds)
        ]
        for row in noticed:
            row.interrupted_at = now
        if noticed:
            ids = [row.id for row in noticed]
            self._rows().filter(pk__in=ids, interrupted_at=None).update(interrupted_at=now)
        return instances

    def _has_ended(self, row: SimulatedInstance) -> bool:
        interrupted = row.interrupted_at and self._is_due(row.interrupted_at, NOTICE.total_seconds())
        return bool(interrupted) or self._is_due(row.launched_at, self.options.vanish_after_seconds)

    def _is_due(self, since: datetime, seconds: float | None) -> bool:
        return seconds is not None and self.clock() >= since + timedelta(seconds=seconds)

    def _instance(self, row: SimulatedInstance) -> Instance:
        if row.ended_at or self._has_ended(row):
            state = InstanceState.GONE
        elif self._is_due(row.launched_at, self.options.launch_seconds):
            state = InstanceState.RUNNING
        else:
            state = InstanceState.PENDING
        return Instance(
            id=row.id,
            state=state,
            slot_id=row.slot_id,
            token=row.token,
            endpoint=self.simulators.address_of(row.id) if self.simulators else f"https://{row.id}.sim",
            market=Market(row.market),
            launched_at=row.launched_at,
        )

    def _acknowledge(self, instance_id: str) -> None:
        self._rows().filter(pk=instance_id).update(notice_taken=True)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _draw(fault: str, request: LaunchRequest) -> float:
    """Return a pseudo-random number from 0 up to 100 that is constant for the same call."""
    drawn = int.from_bytes(_hash(f"{fault}\n{request.token}\n{request.offering.name}")[:4], "big")
    return drawn * 100 / 2**32


class SimulatorControl:
    """The simulator process at an address; its errors become runtime failures."""

    def __init__(self, url: str) -> None:
        self._url = url

    def address_of(self, instance_id: str) -> str:
        return f"{self._url.rstrip('/')}/{instance_id}"

    def ensure(self, instance_ids: Iterable[str], options: Mapping[str, object]) -> None:
        """Start the instances that are missing; an existing one keeps its labs."""
        with self._admin() as admin:
            missing = set(instance_ids) - set(admin.controllers())
            for name in sorted(missing):
                admin.add(name, **options)

    def remove(self, instance_ids: Iterable[str]) -> None:
        """Remove instances with their labs; succeed for instances that are gone already."""
        with self._admin() as admin:
            for name in instance_ids:
                admin.remove(name)

    @contextmanager
    def _admin(self) -> Iterator[SimulatorAdmin]:
        """Call the process; turn its errors into runtime failures."""
        try:
            with SimulatorAdmin(self._url, timeout=5.0) as admin:
                yield admin
        except OptionError as error:
            raise Misconfigured(f"The simulator refuses: {error}") from error
        except httpx.HTTPError as error:
            raise ResponseLost(f"The simulator does not respond: {error or type(error).__name__}") from error
