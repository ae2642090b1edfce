"""What can be done to many definitions or sessions at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from lcm import lifecycle
from lcm.actors import Actor
from lcm.errors import LcmError
from lcm.models import DefinitionStatus, LabletDefinition, LabletSession
from lcm.pages.lists import DEFINITIONS, SESSIONS
from lcm.services.definitions import set_definition_status
from lcm.services.sessions import cancel_sessions
from lcm.web.bulk import BulkWork, Handled, register_bulk


def _cancel(rows: Sequence[LabletSession], reason: str, actor: Actor, now: datetime) -> Handled:
    return Handled(*cancel_sessions(sessions=rows, actor=actor, now=now, reason=reason))


def _set_status(
    status: DefinitionStatus,
) -> Callable[[Sequence[LabletDefinition], str, Actor, datetime], Handled]:
    def work(rows: Sequence[LabletDefinition], reason: str, actor: Actor, now: datetime) -> Handled:
        done = 0
        for definition in rows:
            try:
                set_definition_status(definition=definition, status=status, reason=reason, actor=actor)
                done += 1
            except LcmError:
                continue
        return Handled(done, len(rows) - done)

    return work


CANCEL = BulkWork(
    name="cancel-sessions",
    page=SESSIONS,
    list_url="session_list",
    verb="Cancel",
    past="cancelled or being stopped",
    effect="Those that wait leave the queue; those that run are stopped and lose unsaved work. "
    "Those that have ended stay as they are.",
    able=lambda rows: rows.filter(status__in=list(lifecycle.CANCEL_TO)),
    work=_cancel,
    danger=True,
)
ACTIVATE = BulkWork(
    name="activate-definitions",
    page=DEFINITIONS,
    list_url="definition_list",
    verb="Activate",
    past="made active",
    effect="They can be asked for. Those that are active already stay as they are.",
    able=lambda rows: rows.exclude(status=DefinitionStatus.ACTIVE),
    work=_set_status(DefinitionStatus.ACTIVE),
)
DEPRECATE = BulkWork(
    name="deprecate-definitions",
    page=DEFINITIONS,
    list_url="definition_list",
    verb="Deprecate",
    past="made deprecated",
    effect="They cannot be asked for any more. Sessions that exist are untouched.",
    able=lambda rows: rows.exclude(status=DefinitionStatus.DEPRECATED),
    work=_set_status(DefinitionStatus.DEPRECATED),
    danger=True,
)


def register_actions() -> None:
    for action in (CANCEL, ACTIVATE, DEPRECATE):
        register_bulk(action)
