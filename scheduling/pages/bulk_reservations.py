"""Bulk actions on reservations: waiting ones, and those without a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from lcm.domain.actors import Actor
from lcm.services.sessions import cancel_sessions
from lcm.web.bulk_actions import BulkOperation, BulkResult, BulkTexts, for_each_row
from lcm.web.forms import ReasonForm
from lcm.web.wording import Plural
from scheduling.models import ACTIVE_PHASES, Reservation
from scheduling.pages.lists import RESERVATIONS
from scheduling.pages.queue_lists import QUEUE
from scheduling.selectors.pools import enabled_pools
from scheduling.services.pool_transfer import move_to_pool
from scheduling.services.reservations import cancel_reservation


class BulkMoveForm(ReasonForm):
    """Choose a pool; the service decides whether it suits each session."""

    pool = forms.ChoiceField(
        label=_("Pool"),
        choices=lambda: [("", gettext("Choose a pool")), *((name, name) for name in enabled_pools())],
    )
    field_order = ("pool", "reason")


def _in_other_pools(rows: QuerySet[Reservation], given: Mapping[str, Any]) -> QuerySet[Reservation]:
    """Return sessions that wait in another pool; a job therefore skips the ones it has moved."""
    return rows.exclude(pool__name=given["pool"])


def _move(row: Reservation, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    assert row.session is not None
    move_to_pool(session=row.session, pool=given["pool"], reason=given["reason"], actor=actor, now=now)


def _cancel_one(row: Reservation, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    cancel_reservation(reservation=row, reason=given["reason"], actor=actor, now=now)


def _cancel(rows: Sequence[Reservation], given: Mapping[str, Any], actor: Actor, now: datetime) -> BulkResult:
    """Cancel the sessions with their reservations, and reservations without a session."""
    sessions = [row.session for row in rows if row.session]
    cancelled, rejected = cancel_sessions(sessions=sessions, reason=given["reason"], actor=actor, now=now)
    bare = for_each_row(_cancel_one)([row for row in rows if not row.session], given, actor, now)
    return BulkResult(cancelled + bare.done, rejected + bare.rejected)


MOVE_WAITING = BulkOperation(
    name="move-waiting",
    page=QUEUE,
    list_url="queue_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Move %(count)s waiting session", "Move %(count)s waiting sessions")),
        question=Plural(
            ngettext_lazy(
                "Move %(count)s waiting session to another pool?",
                "Move %(count)s waiting sessions to another pool?",
            )
        ),
        result=Plural(ngettext_lazy("%(count)s waiting session moved.", "%(count)s waiting sessions moved.")),
        effect=_("The sessions join the queue of the other pool and keep their age and priority."),
        none_eligible=Plural(
            ngettext_lazy(
                "This reservation cannot be moved", "None of the %(count)s reservations can be moved"
            )
        ),
        some_eligible=_("%(count)s of %(selected)s reservations in the queue can be moved."),
        ineligible=_("Reservations without a session are not moved."),
    ),
    eligible_rows=lambda rows: rows.filter(session__isnull=False),
    filter_by_form=_in_other_pools,
    run=for_each_row(_move),
    form=BulkMoveForm,
)
CANCEL_WAITING = BulkOperation(
    name="cancel-waiting",
    page=QUEUE,
    list_url="queue_list",
    texts=BulkTexts(
        button=Plural(
            ngettext_lazy(
                "Cancel %(count)s reservation in the queue", "Cancel %(count)s reservations in the queue"
            )
        ),
        question=Plural(
            ngettext_lazy(
                "Cancel %(count)s reservation in the queue?", "Cancel %(count)s reservations in the queue?"
            )
        ),
        result=Plural(
            ngettext_lazy(
                "%(count)s reservation in the queue cancelled.",
                "%(count)s reservations in the queue cancelled.",
            )
        ),
        effect=_("The reservations leave the queue, and their sessions are cancelled."),
        dismiss=_("Keep reservations"),
    ),
    eligible_rows=lambda rows: rows,
    run=_cancel,
    danger=True,
)
CANCEL_BARE = BulkOperation(
    name="cancel-reservations",
    page=RESERVATIONS,
    list_url="reservation_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Cancel %(count)s reservation", "Cancel %(count)s reservations")),
        question=Plural(ngettext_lazy("Cancel %(count)s reservation?", "Cancel %(count)s reservations?")),
        result=Plural(ngettext_lazy("%(count)s reservation cancelled.", "%(count)s reservations cancelled.")),
        effect=_("The holders lose their reserved capacity."),
        none_eligible=Plural(
            ngettext_lazy(
                "This reservation cannot be cancelled", "None of the %(count)s reservations can be cancelled"
            )
        ),
        some_eligible=_("%(count)s of %(selected)s reservations can be cancelled."),
        ineligible=_("Reservations of sessions and ended reservations are skipped."),
        dismiss=_("Keep reservations"),
    ),
    eligible_rows=lambda rows: rows.filter(session=None, phase__in=ACTIVE_PHASES),
    run=for_each_row(_cancel_one),
    danger=True,
)
