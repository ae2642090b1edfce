"""Models of pools, slots, reservations, ticks and decisions."""
# ruff: noqa: F401

from scheduling.models.decisions import Decision, DecisionOutcome, Explanation, QueueOrder
from scheduling.models.installation import Installation
from scheduling.models.observer_runs import HandlerFailure, Observer, ObserverRun, RunKind
from scheduling.models.pools import Pool, SpotPolicy
from scheduling.models.reservations import (
    ACTIVE_PHASES,
    EndedPart,
    LastVerdict,
    Phase,
    Reservation,
    ReservationPart,
)
from scheduling.models.session_labs import SessionLab
from scheduling.models.slots import (
    DRAINABLE,
    IN_FLIGHT,
    LIVE,
    OCCUPIED,
    AttemptOutcome,
    LaunchAttempt,
    PortAllocation,
    Slot,
    SlotState,
)
from scheduling.models.ticks import ProcessLease, SimulatedInstance, TickRun
