"""Step 3: waiting reservations onto READY slots."""

from __future__ import annotations

from scheduling.placement import place
from scheduling.selectors.rooms import rooms_of, serving_slots, waiting_claims
from scheduling.services.assignment import assign
from scheduling.steps.context import TickContext

# The head of the queue that one tick looks at; the rest waits for the next.
QUEUE_HEAD = 50_000
COMMIT = 2_000


def place_waiting(tick: TickContext) -> None:
    """Plan in memory, commit in pieces; what did not fit is the demand for new slots."""
    claims = waiting_claims(tick.pool, QUEUE_HEAD)
    if not claims:
        return
    plan = place(claims, rooms_of(tick.pool, serving_slots(tick.pool)))
    tick.unmet = plan.unmet
    pairs = list(plan.placed.items())
    for start in range(0, len(pairs), COMMIT):
        if not tick.still_mine():
            return
        tick.count("placed", assign(tick.pool, dict(pairs[start : start + COMMIT]), now=tick.now))
    tick.count("unmet", len(plan.unmet))
