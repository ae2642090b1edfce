"""Models of pools, slots, reservations, ticks and decisions."""

from scheduling.models.decisions import Decision, DecisionOutcome, Explanation, QueueOrder
from scheduling.models.installation import Installation
from scheduling.models.observer_runs import HandlerFailure, ObserverRun, RunKind
from scheduling.models.pools import Pool, SpotPolicy
from scheduling.models.reservations import ACTIVE_PHASES, LastVerdict, Phase, Reservation, ReservationPart
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

__all__ = [
    "ACTIVE_PHASES",
    "DRAINABLE",
    "IN_FLIGHT",
    "LIVE",
    "OCCUPIED",
    "AttemptOutcome",
    "Decision",
    "DecisionOutcome",
    "Explanation",
    "HandlerFailure",
    "Installation",
    "LastVerdict",
    "LaunchAttempt",
    "ObserverRun",
    "Phase",
    "Pool",
    "PortAllocation",
    "ProcessLease",
    "QueueOrder",
    "Reservation",
    "ReservationPart",
    "RunKind",
    "SimulatedInstance",
    "Slot",
    "SlotState",
    "SpotPolicy",
    "TickRun",
]
