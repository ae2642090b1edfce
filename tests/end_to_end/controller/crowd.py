"""Concurrent sessions, each alone on its worker, so that a fault affects one session only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.control_plane import wait_until
from tests.support.controller_plane import FINAL, Plane
from tests.support.simulator import Fault

POOL = "cml-alone"
LONGEST = 120
# LCM needs a while to respond about many sessions.
PAUSE = 1.5


class Crowd:
    """`sessions` maps each scenario to its session."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.sessions: dict[str, str] = {}
        self._faults: dict[str, tuple[Fault, ...]] = {}

    def request(self, name: str, *faults: Fault, **fields: Any) -> None:
        """Request a session for a scenario. `place` waits until it has a worker and injects its faults."""
        self.sessions[name] = self.plane.request_session(pool=POOL, **fields)
        self._faults[name] = faults

    def place(self) -> None:
        """Wait until all sessions have a worker. Call before a controller is started."""
        expected = set(self.sessions.values())
        wait_until(lambda: expected <= set(self._placed()), "all have a worker", 60, self.details, PAUSE)
        placed = self._placed()
        for name, session in self.sessions.items():
            for fault in self._faults[name]:
                self.plane.simulator.admin.fail(placed[session], fault)

    def until(self, names: Iterable[str], *statuses: str, seconds: float = LONGEST) -> None:
        expected = set(names)
        wait_until(
            lambda: all(status in statuses for name, status in self.statuses().items() if name in expected),
            f"{', '.join(sorted(expected))} are {' or '.join(statuses)}",
            seconds,
            self.details,
            PAUSE,
        )

    def until_faults_occurred(self) -> None:
        """Wait until each fault has occurred."""

        def have_all_occurred() -> bool:
            return not any(each["faults"] for each in self.plane.workers(POOL).values())

        wait_until(have_all_occurred, "each fault has occurred", LONGEST, self.details, PAUSE)

    def statuses(self) -> dict[str, str]:
        rows = self.plane.call("GET", f"lablet-sessions/?pool={POOL}&page_size=100").json()["results"]
        by_id = {row["id"]: row["status"] for row in rows}
        return {name: by_id[session] for name, session in self.sessions.items()}

    def cancel(self, names: Iterable[str]) -> None:
        for name in names:
            self.plane.call("POST", f"lablet-sessions/{self.sessions[name]}/cancel", {"reason": "enough"})

    def restore_workers(self) -> None:
        for worker in self.plane.workers(POOL):
            self.plane.simulator.admin.clear_faults(worker)

    def check_all_end_normally(self) -> dict[str, dict[str, Any]]:
        """Check that all sessions end and leave nothing behind. Return the ended sessions."""
        self.until(self.sessions, *FINAL)
        self.restore_workers()
        wait_until(lambda: not self._labs(), "no lab is left", 60, self.details, PAUSE)
        assert not self.plane.ports_of(*self.sessions.values())
        ended = {name: self.plane.session(session) for name, session in self.sessions.items()}
        for name, session in ended.items():
            assert is_observed_once(session), f"{name}: {session}"
        assert not self._imported_twice(), f"{self._imported_twice()}:\n{self.details()}"
        return ended

    def details(self) -> str:
        steps = {
            name: [
                (step["at"], step["to_status"], step["reason"])
                for step in self.plane.session(key)["transitions"]
            ]
            for name, key in self.sessions.items()
        }
        return f"{json.dumps(steps, indent=1)}\n{self.plane.logs()}"

    def _placed(self) -> dict[str, str]:
        """Return the worker of each placed session."""
        rows = self.plane.call("GET", f"reservations/?pool={POOL}&active=true&page_size=200").json()
        slots = slots_of(self.plane)
        return {row["session"]: slots[row["slot"]] for row in rows["results"] if row["slot"] in slots}

    def _labs(self) -> list[str]:
        return [lab["title"] for each in self.plane.workers(POOL).values() for lab in each["labs"].values()]

    def _imported_twice(self) -> list[str]:
        """Return titles of labs imported more than once; a title belongs to one attempt of one session."""
        workers = self.plane.workers(POOL).values()
        imported = Counter(title for each in workers for title in each["imported"])
        return [title for title, times in imported.items() if times > 1]


@contextmanager
def one_session_per_worker(plane: Plane, size: int) -> Iterator[None]:
    """Provide this many workers, each for one session."""
    pools = plane.call("GET", "pools/?page_size=50").json()["results"]
    (key,) = [pool["id"] for pool in pools if pool["name"] == POOL]
    plane.call("PATCH", f"pools/{key}", {"min_slots": size}).raise_for_status()
    wait_until(
        lambda: len(slots_of(plane)) >= size,
        f"there are {size} workers",
        LONGEST,
        lambda: str(plane.call("GET", f"slots/?pool={POOL}&page_size=100").json()["results"]),
        PAUSE,
    )
    yield
    plane.call("PATCH", f"pools/{key}", {"min_slots": 0}).raise_for_status()


def slots_of(plane: Plane) -> dict[str, str]:
    """Return the instances of ready slots by id."""
    rows = plane.call("GET", f"slots/?pool={POOL}&state=READY&page_size=100").json()["results"]
    return {row["id"]: row["instance_id"] for row in rows}


def statuses_of(session: dict[str, Any]) -> list[str]:
    return [step["to_status"] for step in session["transitions"]]


def is_observed_once(session: dict[str, Any]) -> bool:
    """Return whether the session was observed once, or reports why not."""
    is_explained = any("not observed" in step["reason"] for step in session["transitions"])
    if session["observation_count"]:
        return session["observation_count"] == 1 and not is_explained
    return is_explained or "RUNNING" not in statuses_of(session)
