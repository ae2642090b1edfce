"""`python -m tests.end_to_end.faults`: run LCM under faults and check its invariants."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import psycopg

from tests.end_to_end.faults import invariants
from tests.end_to_end.faults.injector import Injector
from tests.end_to_end.faults.ledger import Ledger
from tests.end_to_end.faults.monitor import Monitor, Tally
from tests.end_to_end.faults.stage import RUN_INTERVALS, FaultStage
from tests.end_to_end.faults.workload import Clients, Pace
from tests.support.control_plane import ROOT
from tests.support.errors import Missing

IN_NAMESPACE = "LCM_FAULTS_NAMESPACE"
CHECK_SECONDS = 2.0
DRAIN_SECONDS = 420.0
# A survey releases leaked ports; a port that a lab may still use is reserved for six minutes.
PORTS_SECONDS = 400.0
SHOWN = 12
FULL = Pace(shortest=30, longest=120, extension=60, sessions=12)
QUICK = Pace(shortest=20, longest=45, extension=20, sessions=8)


class FaultRun:
    """One run: workload, faults, checks and summary."""

    def __init__(self, options: argparse.Namespace, folder: Path, logs: Path) -> None:
        self.options, self.logs = options, logs
        self.started_at = time.time()
        rng = random.Random(options.seed)
        # Separate generators, so that the faults of a seed do not depend on the clients.
        workload, faults, network = (random.Random(rng.random()) for _ in range(3))
        self.stage = FaultStage(folder, logs, network, small_disks=options.small_disks)
        self.ledger = Ledger()
        self.injector = Injector(self.stage, faults, self.say)
        self._workload = workload
        self.own_exits: list[str] = []
        self._events = (logs / "events.log").open("a")

    def say(self, text: str) -> None:
        line = f"{time.time() - self.started_at:7.1f} s  {text}"
        print(line, flush=True)
        print(line, file=self._events, flush=True)

    async def run(self) -> int:
        try:
            await self.stage.start()
            self.monitor = Monitor(self.stage.database, self.stage.simulator)
            self.monitor.install()
            self.say("LCM is ready; the run begins")
            monitoring = [asyncio.create_task(self._supervise()), asyncio.create_task(self._monitor())]
            await self._disturb()
            await self._drain()
            observed_until = time.time()
            for task in monitoring:
                task.cancel()
            await asyncio.to_thread(self._check, observed_until)
        finally:
            self.ledger.save(self.logs / "ledger.json")
            await self.stage.close()
        return self.summary()

    async def _disturb(self) -> None:
        pace = QUICK if self.options.quick else FULL
        clients = Clients(self.stage.web_ports, self.stage.known, self.ledger, pace, self._workload, self.say)
        client_task = asyncio.create_task(clients.run())
        until = time.monotonic() + self.options.minutes * 60
        await self.injector.run(until)
        self.say("no further faults; waiting for the sessions to end")
        clients.stop()
        await client_task

    async def _supervise(self) -> None:
        """Restart killed processes, and record processes that ended by themselves."""
        while True:
            for process in self.stage.processes.values():
                exit_text = process.supervise()
                if exit_text is not None:
                    self.own_exits.append(f"{process.name} {exit_text}")
                    self.say(f"{process.name} {exit_text} by itself")
            await asyncio.sleep(0.2)

    async def _monitor(self) -> None:
        while True:
            await asyncio.to_thread(self.monitor.check, set(self.ledger.entries))
            await asyncio.sleep(CHECK_SECONDS)

    async def _drain(self) -> None:
        """Wait until all sessions have ended, their labs and ports are gone and their usage is summed."""
        await self._wait(
            lambda: not invariants.unfinished(self.monitor.statuses()) and not self.monitor.labs(),
            DRAIN_SECONDS,
        )
        self.say("sessions have ended; waiting for ports and usage")
        await self._wait(
            lambda: not self.monitor.ended_ports() and self.monitor.usage_is_complete(), PORTS_SECONDS
        )

    async def _wait(self, condition: object, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if await asyncio.to_thread(condition):  # type: ignore[arg-type]
                    return
            except (psycopg.OperationalError, httpx.HTTPError):
                pass
            await asyncio.sleep(1)

    def _check(self, observed_until: float) -> None:
        """Run the checks of the whole history."""
        entries, monitor = list(self.ledger.entries.values()), self.monitor
        steps, statuses, runs = monitor.steps(), monitor.statuses(), monitor.runs()
        run_steps = {key: steps[key] for key in statuses}
        extensions = sum(len(entry.extensions) for entry in entries)
        cancels = sum(entry.cancelled_at is not None for entry in entries)
        self._add(
            "acknowledged requests exist", len(entries), invariants.lost_requests(entries, statuses.keys())
        )
        self._add("no session ends before its acknowledged end", len(entries) + extensions,
                  invariants.ended_early(entries, steps))  # fmt: skip
        self._add("acknowledged cancels end the session", cancels, invariants.ignored_cancels(entries, steps))
        self._add("each session ends in a final status", len(statuses), invariants.unfinished(statuses))
        self._add("no session fails", len(statuses), invariants.failed(run_steps))
        self._add("no lab is left on a worker", 1, [f"a lab of {lab.session_id}" for lab in monitor.labs()])
        self._add("no port stays allocated to an ended session", 1, monitor.ended_ports())
        self._add("no history step before creation", sum(map(len, run_steps.values())),
                  invariants.steps_before_creation(monitor.created(), run_steps))  # fmt: skip
        self._add("never two runs of one handler at once", len(runs), invariants.overlapping_runs(runs))
        checks, late = invariants.late_runs(
            runs, self.injector.windows, RUN_INTERVALS, observed_until=observed_until
        )
        self._add("each handler runs again within 15 s (tick after a kill 5 s)", checks, late)
        changes = monitor.lease_changes()
        stolen = invariants.stolen_leases(changes)
        self._add("no lease is taken before its end", monitor.leases_taken(), stolen)
        self._check_usage()
        self._add("no process ends by itself", len(self.stage.processes), self.own_exits)
        self._add("no 5xx except 503", sum(self.ledger.responses.values()),
                  invariants.errors_by_kind(self.ledger.server_errors))  # fmt: skip
        self.gaps = invariants.longest_gaps(runs, observed_until=observed_until)
        self.statuses = statuses

    def _check_usage(self) -> None:
        complete = [] if self.monitor.usage_is_complete() else ["usage is not recorded and summed to its end"]
        usage = self.monitor.usage()
        self._add("usage records = user = project = domain buckets", len(usage),
                  [*complete, *invariants.unequal_usage(usage)])  # fmt: skip
        result = subprocess.run(
            [sys.executable, "manage.py", "rebuild_usage", "--check"],
            cwd=ROOT, env=self.stage.env, capture_output=True, text=True,
        )  # fmt: skip
        problem = [] if result.returncode == 0 else [(result.stdout + result.stderr).strip()]
        self._add("manage.py rebuild_usage --check finds no difference", 1, problem)

    def _add(self, name: str, checks: int, violations: Sequence[str]) -> None:
        self.monitor.tallies[name].add(checks, list(violations))

    def summary(self) -> int:
        tallies = self.monitor.tallies
        extensions = sum(len(entry.extensions) for entry in self.ledger.entries.values())
        lines = ["", f"Seed {self.options.seed}, {self.options.minutes:g} min,"
                 f" {len(self.injector.windows)} faults, {len(self.ledger.entries)} acknowledged sessions,"
                 f" {extensions} acknowledged extensions."]  # fmt: skip
        lines += self.options.skipped
        lines += ["", f"{'invariant':<60} {'checks':>8} {'violations':>10}"]
        lines += [
            f"{name:<60} {tally.checks:>8} {len(tally.violations):>10}" for name, tally in tallies.items()
        ]
        for name, tally in tallies.items():
            lines += _listed(name, tally)
        lines += ["", "Responses to the clients: " + _counted(self.ledger.responses)]
        slowest = [f"{status} {seconds:.1f} s" for status, seconds in sorted(self.ledger.slowest.items())]
        lines += ["Slowest response by status: " + ", ".join(slowest)]
        ended: dict[str, int] = {}
        for status in self.statuses.values():
            ended[status] = ended.get(status, 0) + 1
        lines += ["Sessions by status: " + _counted(ended)]
        lines += [
            "Longest time between two runs: "
            + ", ".join(f"{n} {s:.1f} s" for n, s in sorted(self.gaps.items()))
        ]
        violation_count = sum(len(tally.violations) for tally in tallies.values())
        lines += [
            "",
            f"{violation_count} violations. Logs are in {self.logs}. Repeat with --seed {self.options.seed}.",
        ]
        (self.logs / "summary.txt").write_text("\n".join(lines) + "\n")
        print("\n".join(lines), flush=True)
        return 1 if violation_count else 0


def _listed(name: str, tally: Tally) -> list[str]:
    if not tally.violations:
        return []
    rest = [f"  … and {len(tally.violations) - SHOWN} more"] if len(tally.violations) > SHOWN else []
    return ["", f"{name}:", *(f"  {each}" for each in tally.violations[:SHOWN]), *rest]


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the faults and the workload are drawn from it")
    parser.add_argument("--minutes", type=float, default=30, help="how long faults are applied (30)")
    parser.add_argument(
        "--quick", action="store_true", help="3 minutes with short timeslots, for development"
    )
    options = parser.parse_args(arguments)
    if options.quick:
        options.minutes = min(options.minutes, 3)
    options.small_disks = os.environ.get(IN_NAMESPACE) == "1"
    options.skipped = (
        [] if options.small_disks else ["Skipped: full disks (mounting a small disk needs root)."]
    )
    return options


def enter_namespace() -> None:
    """As root, continue in a private mount namespace, so that small disks vanish with the run."""
    unshare = shutil.which("unshare")
    if os.environ.get(IN_NAMESPACE) or os.geteuid() != 0 or unshare is None:
        return
    if subprocess.run([unshare, "--mount", "true"], capture_output=True).returncode == 0:
        command = [unshare, "--mount", sys.executable, "-m", "tests.end_to_end.faults", *sys.argv[1:]]
        os.execve(unshare, command, {**os.environ, IN_NAMESPACE: "1"})


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    logs = ROOT / "var" / "faults" / str(options.seed)
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="lcm-faults-", dir="/tmp", ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)
        try:
            return asyncio.run(FaultRun(options, Path(name), logs).run())
        except Missing as error:
            print(f"missing: {error}")
            return 2


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.argv[1:] != ["--help"]:
        enter_namespace()
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("Stopped; all processes of the run have ended")
        sys.exit(130)
