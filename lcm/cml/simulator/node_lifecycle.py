"""Lifecycle of a node. Its state is computed from the times it was started and stopped."""

from __future__ import annotations

from dataclasses import dataclass

DEFINED = "DEFINED_ON_CORE"
QUEUED = "QUEUED"
STARTING = "STARTING"
STARTED = "STARTED"
BOOTED = "BOOTED"
STOPPED = "STOPPED"

RUNNING = frozenset({QUEUED, STARTING, STARTED, BOOTED})
OPERATIONAL = frozenset({STARTING, STARTED, BOOTED})

PROGRESS = {
    DEFINED: "Not running",
    STOPPED: "Not running",
    QUEUED: "Not running",
    STARTING: "Booting",
    STARTED: "Booting",
    BOOTED: "Booted",
}


@dataclass(frozen=True)
class BootPlan:
    """How long a node stays in each state. CML before 2.10 has no STARTING."""

    queue: float
    starting: float
    boot: float
    stop: float
    has_starting: bool

    def state_after(self, seconds: float) -> str:
        """Return the state this many seconds after the start."""
        if seconds < self.queue:
            return QUEUED
        if seconds < self.queue + self.starting:
            return STARTING if self.has_starting else QUEUED
        return STARTED if seconds < self.queue + self.starting + self.boot else BOOTED


@dataclass
class NodeLifecycle:
    """When a node was started, and when its stop was requested."""

    plan: BootPlan
    started_at: float | None = None
    stop_requested_at: float | None = None
    is_stuck: bool = False

    def start(self, now: float) -> None:
        """Start the node unless it runs."""
        if self.state(now) not in RUNNING:
            self.started_at, self.stop_requested_at = now, None

    def stop(self, now: float) -> None:
        """Request a stop if the node runs."""
        if self.state(now) in RUNNING and self.stop_requested_at is None:
            self.stop_requested_at = now

    def wipe(self) -> None:
        """Reset the node to the imported state."""
        self.started_at = self.stop_requested_at = None

    def state(self, now: float) -> str:
        """Return the state at a time."""
        if self.started_at is None:
            return DEFINED
        if self.stop_requested_at is None:
            return self._running_state(now)
        if now >= self.stop_requested_at + self.plan.stop:
            return STOPPED
        return self._running_state(self.stop_requested_at)

    def is_settled(self, now: float) -> bool:
        """Return whether the state is final."""
        return self.state(now) in (DEFINED, STOPPED) or (
            self.state(now) == BOOTED and self.stop_requested_at is None
        )

    def seconds_in(self, now: float) -> dict[str, int]:
        """Return how many whole seconds ago each state was reached, like CML's `times`."""
        if self.started_at is None:
            return {}
        marks = {
            QUEUED: 0.0,
            STARTED: self.plan.queue + self.plan.starting,
            BOOTED: self.plan.queue + self.plan.starting + self.plan.boot,
        }
        elapsed = now - self.started_at
        return {state: int(elapsed - mark) for state, mark in marks.items() if elapsed >= mark}

    def running_for(self, now: float) -> float:
        """Return seconds since the node left the queue; 0 if it is not running."""
        if self.started_at is None or self.state(now) not in OPERATIONAL:
            return 0.0
        return max(0.0, now - self.started_at - self.plan.queue)

    def booted_for(self, now: float) -> float:
        """Return seconds since the node booted; 0 if it has not."""
        if self.state(now) != BOOTED:
            return 0.0
        return self.running_for(now) - self.plan.starting - self.plan.boot

    def _running_state(self, moment: float) -> str:
        assert self.started_at is not None
        state = self.plan.state_after(moment - self.started_at)
        return STARTED if self.is_stuck and state == BOOTED else state
