"""What can be done to many slots at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from lcm.actors import Actor
from lcm.errors import LcmError
from lcm.web.bulk import BulkWork, Handled, register_bulk
from scheduling.models import Slot
from scheduling.pages.lists import SLOTS
from scheduling.services import slots as services


def _each(work: Callable[..., Slot]) -> Callable[[Sequence[Slot], str, Actor, datetime], Handled]:
    """One after the other; those whose state does not allow it are counted."""

    def for_each(rows: Sequence[Slot], reason: str, actor: Actor, now: datetime) -> Handled:
        done = 0
        for slot in rows:
            try:
                work(slot=slot, reason=reason, actor=actor, now=now)
                done += 1
            except LcmError:
                continue
        return Handled(done, len(rows) - done)

    return for_each


def _action(
    name: str, verb: str, past: str, effect: str, work: Callable[..., Slot], *, danger: bool = False
) -> BulkWork:
    return BulkWork(
        name=name,
        page=SLOTS,
        list_url="slot_list",
        verb=verb,
        past=past,
        effect=effect,
        able=lambda rows: rows,
        work=_each(work),
        danger=danger,
    )


CORDON = _action(
    "cordon-slots",
    "Cordon",
    "cordoned",
    "They get no more sessions; those on them stay.",
    lambda **given: services.cordon_slot(cordoned=True, **given),
)
UNCORDON = _action(
    "uncordon-slots",
    "Uncordon",
    "uncordoned",
    "They may get sessions again.",
    lambda **given: services.cordon_slot(cordoned=False, **given),
)
DRAIN = _action(
    "drain-slots",
    "Drain",
    "set to drain",
    "Sessions on them run to their end; then the workers are ended.",
    services.drain_slot,
    danger=True,
)


def register_actions() -> None:
    for action in (CORDON, UNCORDON, DRAIN):
        register_bulk(action)
