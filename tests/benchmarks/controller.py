"""One controller with many running labs: delays of heartbeats, statistics and observations."""

from __future__ import annotations

import os
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from tests.benchmarks.measuring import Timing, print_table, start_django
from tests.benchmarks.planes import cpu_seconds_of, running_plane
from tests.support.control_plane import wait_until
from tests.support.controller_plane import ControllerProcess
from tests.support.simulator import SimulatorProcess

WORKERS = 20
LABS = 200
NODES = 10
LATENCY = 0.02
MINUTE = 60.0
AS_USUAL = {
    "HEARTBEAT_SECONDS": "10",
    "STATS_SECONDS": "15",
    "SURVEY_SECONDS": "60",
    "BOOT_POLL_SECONDS": "2",
    "RUNNING_CHECK_SECONDS": "60",
    "ORPHAN_GRACE_SECONDS": "300",
    "LOG_LEVEL": "WARNING",
}


def lab() -> str:
    """Return a topology of ten routers in a row."""
    nodes = "\n".join(
        f"  - {{id: n{n}, label: r{n}, node_definition: iosv, cpus: 1, ram: 512, tags: ['serial:{5000 + n}'],"
        f" interfaces: [{{id: i0, label: Gi0/0}}, {{id: i1, label: Gi0/1}}]}}"
        for n in range(NODES)
    )
    links = "\n".join(f"  - {{id: l{n}, n1: n{n}, i1: i1, n2: n{n + 1}, i2: i0}}" for n in range(NODES - 1))
    return f"lab: {{title: Row, version: 0.3.0}}\nnodes:\n{nodes}\nlinks:\n{links}\n"


def main() -> None:
    start_django()
    from django.db import connection

    if connection.vendor != "postgresql":
        print("\nThe controller is measured on PostgreSQL alone: it is the controller that is measured.")
        return
    with (
        SimulatorProcess() as simulator,
        running_plane(SIMULATOR_URL=simulator.url, TICK_INTERVAL="1") as plane,
    ):
        key, ends_in = _prepare(), 150.0
        with tempfile.TemporaryDirectory(prefix="lcm-controller-") as folder:
            from tests.support.controller_plane import ControllerProcess

            slow = {
                "HEARTBEAT_SECONDS": "10",
                "STATS_SECONDS": "15",
                "SURVEY_SECONDS": "60",
                "BOOT_POLL_SECONDS": "2",
            }
            quiet = {"RUNNING_CHECK_SECONDS": "60", "ORPHAN_GRACE_SECONDS": "300", "LOG_LEVEL": "WARNING"}
            controller = ControllerProcess(Path(folder), f"http://{plane.address}", key, slow | quiet)
            begun = time.monotonic()
            controller.start()
            try:
                _measure(controller, begun, ends_in)
            finally:
                controller.kill()


def _prepare() -> str:
    from django.utils import timezone

    from lcm.domain.actors import SYSTEM
    from lcm.models import TokenKind
    from lcm.services.definitions import import_definition
    from lcm.services.tokens import create_token
    from scheduling.services.pools import create_pool

    now = timezone.now()
    create_pool(
        name="bench",
        actor=SYSTEM,
        min_slots=WORKERS,
        max_slots=WORKERS,
        max_leases=LABS // WORKERS,
        cpu_cores=400,
        memory_gb=400,
        storage_gb=4000,
        runtime_settings={
            "launch_seconds": 0,
            "boot_seconds": 0,
            "lab_boot_seconds": 5,
            "cml_latency_seconds": LATENCY,
        },
    )
    import_definition(topology=lab(), name="row", status="active", pool="bench", actor=SYSTEM, now=now)
    _, key = create_token(
        name="bench",
        kind=TokenKind.CONTROLLER,
        scopes=["pool:bench"],
        expires_at=now + timedelta(days=1),
        actor=SYSTEM,
        now=now,
    )
    return key


def _request_sessions(ends_in: float) -> None:
    from django.utils import timezone

    from lcm.domain.actors import SYSTEM
    from lcm.models import Domain, LabletDefinition, Membership, Project, User
    from lcm.services.sessions import create_session

    now = timezone.now()
    owner = User.objects.create_user("bench")
    project = Project.objects.create(domain=Domain.objects.create(name="bench"), name="bench")
    Membership.objects.create(project=project, user=owner)
    for _ in range(LABS):
        create_session(
            definition=LabletDefinition.objects.get(name="row"),
            owner=owner,
            project=project,
            starts_at=now,
            ends_at=now + timedelta(seconds=ends_in),
            actor=SYSTEM,
            now=now,
        )


def _measure(controller: ControllerProcess, begun: float, ends_in: float) -> None:
    from django.utils import timezone

    from lcm.models import LabletSession, SessionTransition
    from scheduling.models import Slot

    def count(**what: object) -> int:
        return LabletSession.objects.filter(**what).count()

    wait_until(lambda: Slot.objects.filter(state="READY").count() == WORKERS, "all workers are ready", 120)
    _request_sessions(ends_in)
    requested_at = time.monotonic()
    wait_until(
        lambda: count(status="RUNNING") == LABS, f"{LABS} labs run", 140, lambda: controller.log[-3000:]
    )
    up = time.monotonic() - requested_at
    assert controller.process is not None
    pid = controller.process.pid
    oldest, cpu, since = [], cpu_seconds_of(pid), time.monotonic()
    first_end = LabletSession.objects.order_by("ends_at").values_list("ends_at", flat=True)[0]
    while timezone.now() < first_end - timedelta(seconds=2) and time.monotonic() - since < MINUTE:
        beats = Slot.objects.values_list("last_heartbeat", flat=True)
        oldest.append(max((timezone.now() - at).total_seconds() for at in beats if at))
        time.sleep(1)
    busy = (cpu_seconds_of(pid) - cpu) / (time.monotonic() - since)
    figures = _scraped(controller)
    wait_until(
        lambda: count(status="TERMINATED") == LABS, "all have ended", 300, lambda: controller.log[-3000:]
    )
    rows = SessionTransition.objects.filter(to_status__in=("COLLECTING", "TERMINATED")).select_related(
        "session"
    )
    late: dict[str, list[float]] = {"COLLECTING": [], "TERMINATED": []}
    for row in rows:
        late[row.to_status].append((row.at - row.session.ends_at).total_seconds())
    observed, gone = Timing(late["COLLECTING"]), Timing(late["TERMINATED"])
    load = os.getloadavg()[0]
    print_table(
        f"One controller, {LABS} labs of {NODES} nodes on {WORKERS} workers, {LATENCY * 1000:.0f} ms a call",
        ["what", "figure"],
        [
            ["all running after", f"{up:.0f} s"],
            ["oldest heartbeat of any worker, sent every 10 s: worst moment", f"{max(oldest):.1f} s"],
            ["series of figures exported", f"{figures:,}"],
            ["CPU of the controller while they run", f"{busy * 100:.0f} % of a core"],
            ["observed after the end of the timeslot, all at once: p50, p99", _pair(observed)],
            ["lab gone after the end of the timeslot: p50, p99", _pair(gone)],
            ["load average of the machine meanwhile", f"{load:.1f}"],
        ],
    )


def _pair(timing: Timing) -> str:
    return f"{timing.p50 / 1000:.1f} s, {timing.percentile(0.99) / 1000:.1f} s"


def _scraped(controller: ControllerProcess) -> int:
    return controller.metrics().count("lcm_kernel_utilization{")


if __name__ == "__main__":
    main()
