"""Actions by name; the scheduler document of a pool lists them in order."""

from collections.abc import Callable, Mapping

from scheduling.placement.actions.allocate import allocate
from scheduling.placement.actions.eviction import preempt, reclaim
from scheduling.placement.framework.cycle import Cycle

ACTIONS: Mapping[str, Callable[[Cycle], None]] = {
    "allocate": allocate,
    "reclaim": reclaim,
    "preempt": preempt,
}
