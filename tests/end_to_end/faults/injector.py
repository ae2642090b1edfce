"""Faults, drawn from a seeded random generator."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.end_to_end.faults.invariants import Window
from tests.end_to_end.faults.processes import ManagedProcess
from tests.end_to_end.faults.proxy import BROKEN
from tests.end_to_end.faults.stage import FaultStage

CONTROL_PLANE = ("web", "watch", "worker", "beat")
SERVER_SECONDS = 60.0
Say = Callable[[str], None]


@dataclass
class Injector:
    """Draws, applies, ends and records faults. Faults of different targets may overlap."""

    stage: FaultStage
    rng: random.Random
    say: Say
    longest_freeze: float = 30.0
    windows: list[Window] = field(default_factory=list)
    _busy: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def kinds(self) -> dict[str, int]:
        """Return the faults with their weights."""
        found = {
            "kill": 6,
            "kill_child": 3,
            "freeze": 5,
            "restart_broker": 3,
            "restart_database": 2,
            "kill_backend": 1,
            "terminate_backends": 3,
            "cut_network": 4,
            "wrong_clock": 3,
        }
        return {**found, "fill_disk": 3} if self.stage.small_disks else found

    async def run(self, until: float) -> None:
        """Apply faults until this monotonic time, then wait for the last ones to end."""
        kinds = list(self._sequence(until))
        for kind in kinds:
            if time.monotonic() >= until:
                break
            task = asyncio.create_task(getattr(self, f"_{kind}")())
            self._tasks.add(task)
            task.add_done_callback(self._done)
            await asyncio.wait({task}, timeout=self.rng.choice((4, 12, self.longest_freeze)))
            pause = self.rng.uniform(2, 5) if self.rng.random() < 0.3 else self.rng.uniform(14, 22)
            await asyncio.sleep(min(pause, max(0.0, until - time.monotonic())))
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _sequence(self, until: float) -> list[str]:
        """Return each kind once in random order, then by weight, so that short runs include every kind."""
        weights = self.kinds()
        first = list(weights)
        self.rng.shuffle(first)
        count = int(max(0.0, until - time.monotonic()) / 4) + 1
        return first + self.rng.choices(list(weights), list(weights.values()), k=count)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.say(f"the harness failed: {task.exception()!r}")

    @asynccontextmanager
    async def _window(
        self, name: str, target: str, *, control_plane: bool, death: bool = False
    ) -> AsyncIterator[bool]:
        """Record the fault for the duration of the block; False if the target already has a fault."""
        if target in self._busy:
            yield False
            return
        self._busy.add(target)
        start = time.time()
        self.say(name)
        try:
            yield True
        finally:
            self._busy.discard(target)
            self.windows.append(Window(name, start, time.time(), control_plane, death))
            self.say(f"{name}: over after {time.time() - start:.1f} s")

    def _pick(self) -> ManagedProcess:
        role = self.rng.choice((*CONTROL_PLANE, "worker", "controller"))
        return self.stage.processes[f"{role}-{self.rng.randint(1, 2)}"]

    async def _kill(self) -> None:
        process = self._pick()
        plane = not process.name.startswith("controller")
        name = f"kill {process.name}"
        async with self._window(name, process.name, control_plane=plane, death=True) as free:
            if free and process.is_running:
                process.kill()

    async def _kill_child(self) -> None:
        role = self.rng.choice(("web", "worker", "worker"))
        process = self.stage.processes[f"{role}-{self.rng.randint(1, 2)}"]
        children = process.children() if process.is_running else []
        child = self.rng.choice(children) if children else 0
        name = f"kill a child of {process.name}"
        async with self._window(name, process.name, control_plane=True, death=True) as free:
            if free and child:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)

    async def _freeze(self) -> None:
        process = self._pick()
        seconds = self.rng.uniform(2, self.longest_freeze)
        part = self.rng.random() < 0.4 and process.name.startswith(("web", "worker"))
        plane = not process.name.startswith("controller")
        name = f"freeze {'a child of ' if part else ''}{process.name} for {seconds:.0f} s"
        async with self._window(name, process.name, control_plane=plane) as free:
            if not free or not process.is_running:
                return
            children = process.children()
            process.freeze([self.rng.choice(children)] if part and children else process.members())
            await asyncio.sleep(seconds)
            process.thaw()

    async def _restart_broker(self) -> None:
        number = self.rng.choice((signal.SIGTERM, signal.SIGKILL))
        down = self.rng.uniform(0, 8)
        name = f"restart the broker by {number.name}, down for {down:.0f} s"
        async with self._window(name, "broker", control_plane=True) as free:
            if not free:
                return
            await asyncio.to_thread(self.stage.broker.shut_down, number)
            await asyncio.sleep(down)
            self.stage.broker.start_again()
            await self._until(lambda: self.stage.broker.is_ready)

    async def _restart_database(self) -> None:
        down = self.rng.uniform(0, 8)
        async with self._window(
            f"restart the database, down for {down:.0f} s", "database", control_plane=True
        ) as free:
            if not free:
                return
            await asyncio.to_thread(self.stage.database.shut_down)
            await asyncio.sleep(down)
            self.stage.database.start_again()
            await self._until(lambda: self.stage.database.is_ready)

    async def _kill_backend(self) -> None:
        """PostgreSQL closes all connections and recovers when one of its processes is killed."""
        async with self._window("kill -9 of a database backend", "database", control_plane=True) as free:
            pids = await asyncio.to_thread(self.stage.database.backends) if free else []
            if pids:
                os.kill(self.rng.choice(pids), signal.SIGKILL)
                # The server needs a moment to notice.
                await asyncio.sleep(1)
                await self._until(lambda: self.stage.database.is_ready)

    async def _terminate_backends(self) -> None:
        share = self.rng.choice((0.3, 1.0))
        name = f"terminate {share:.0%} of the database connections"
        async with self._window(name, "database", control_plane=True) as free:
            pids = await asyncio.to_thread(self.stage.database.backends) if free else []
            if pids:
                chosen = self.rng.sample(pids, max(1, int(len(pids) * share)))
                await asyncio.to_thread(self.stage.database.terminate_backends, chosen)

    async def _cut_network(self) -> None:
        targets = self.rng.choice(([0], [1], [0, 1]))
        mode = self.rng.choice(BROKEN)
        seconds = self.rng.uniform(5, 40)
        names = " and ".join(f"controller-{index + 1}" for index in targets)
        name = f"network of {names}: {mode} for {seconds:.0f} s"
        async with self._window(name, "network", control_plane=False) as free:
            if not free:
                return
            for index in targets:
                self.stage.proxies[index].set_mode(mode)
            await asyncio.sleep(seconds)
            for index in targets:
                self.stage.proxies[index].set_mode("open")

    async def _wrong_clock(self) -> None:
        index = self.rng.randint(0, 1)
        offset = self.rng.choice((-600, -30, 30, 600))
        seconds = self.rng.uniform(20, 60)
        name = f"clock of controller-{index + 1}: {offset:+d} s for {seconds:.0f} s"
        async with self._window(name, f"clock-{index}", control_plane=False) as free:
            if free:
                self.stage.clocks[index].offset = offset
                await asyncio.sleep(seconds)
                self.stage.clocks[index].offset = 0

    async def _fill_disk(self) -> None:
        index = self.rng.randint(0, 1)
        seconds = self.rng.uniform(10, 40)
        name = f"disk of controller-{index + 1} full for {seconds:.0f} s"
        async with self._window(name, f"disk-{index}", control_plane=False) as free:
            if free:
                filler = fill(self.stage.disks[index])
                await asyncio.sleep(seconds)
                filler.unlink()

    async def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SERVER_SECONDS
        while not await asyncio.to_thread(condition):
            if time.monotonic() > deadline:
                raise TimeoutError("a server did not come back")
            await asyncio.sleep(0.2)


def fill(folder: Path) -> Path:
    """Write a file until the disk of this folder is full."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        for size in (4096, 512, 1):
            with suppress(OSError):
                while file.write(b"\0" * size):
                    pass
    return filler
