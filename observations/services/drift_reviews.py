"""Port drift reviews: opened and resolved by observations, acknowledged by users for a limited time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, Q, Value, When
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.lifecycle import ACTIVE
from lcm.models import LabletSession
from lcm.services.changelog import log_change
from lcm.services.validation import require_reason
from observations.arithmetic.drift import CONFLICT, DriftItem
from observations.models import DriftReview, ReviewState, SessionObservation

CLEAN_OBSERVATIONS = 2
DEFAULT_ACKNOWLEDGEMENT = timedelta(days=30)
MAX_ACKNOWLEDGEMENT = timedelta(days=90)


def update_drift_reviews(
    *,
    session: LabletSession,
    drift: Sequence[DriftItem],
    seen_before: set[str],
    now: datetime,
    is_whole: bool = True,
) -> None:
    """Open or renew a review for each deviation; count a clean observation for the other reviews.

    `seen_before` holds the fingerprints this session already had: it counts once for each. If some ports were
    not read (`is_whole` is false), no review counts as clean.
    """
    found = {item.fingerprint: item for item in drift}
    wanted = ~Q(state=ReviewState.RESOLVED)
    if found:
        wanted |= Q(fingerprint__in=found)
    mine = DriftReview.objects.filter(wanted, definition=session.definition_id)
    # Locked in a fixed order: sessions of a definition are observed concurrently.
    rows = {row.fingerprint: row for row in mine.select_for_update().order_by("pk")}
    known = [(rows[key], item) for key, item in found.items() if key in rows]
    new = [row.pk for row, _item in known if row.fingerprint not in seen_before]
    _renew_reviews(known, session, new=new, now=now)
    _open([item for key, item in found.items() if key not in rows], session, now)
    if is_whole:
        _count_clean([row for key, row in rows.items() if key not in found], session)


def _open(items: Sequence[DriftItem], session: LabletSession, now: datetime) -> None:
    DriftReview.objects.bulk_create(
        [
            DriftReview(
                definition_id=session.definition_id,
                fingerprint=item.fingerprint,
                kind=item.kind,
                name=item.name,
                first_seen=now,
                last_seen=now,
                last_session=session,
                example=item.to_json(),
            )
            for item in items
        ],
        ignore_conflicts=True,
    )


def _renew_reviews(
    known: Sequence[tuple[DriftReview, DriftItem]],
    session: LabletSession,
    *,
    new: Sequence[UUID],
    now: datetime,
) -> None:
    """Reopen resolved reviews; an acknowledgement remains valid until its end.

    `new` are the reviews that this session has not been counted for.
    """
    if not known:
        return
    resolved = When(state=ReviewState.RESOLVED, then=Value(ReviewState.OPEN.value))
    DriftReview.objects.filter(pk__in=[row.pk for row, _item in known]).update(
        state=Case(resolved, default=F("state")),
        last_seen=now,
        last_session=session,
        clean_streak=0,
        sessions=F("sessions") + Case(When(pk__in=new, then=1), default=0),
    )
    others = [(row, item) for row, item in known if row.example != item.to_json()]
    for row, item in others:
        row.example = item.to_json()
    DriftReview.objects.bulk_update([row for row, _item in others], ["example"], batch_size=500)


def _count_clean(rows: Sequence[DriftReview], session: LabletSession) -> None:
    """Resolve reviews after two consecutive clean observations, unless another running lab has the drift."""
    shown = _shown_by_others(session) if rows else set()
    keys = [row.pk for row in rows if row.fingerprint not in shown]
    if keys:
        # A single update: for a second one PostgreSQL would check the last session, which may be locked.
        last = When(clean_streak__gte=CLEAN_OBSERVATIONS - 1, then=Value(ReviewState.RESOLVED.value))
        ended = When(clean_streak__gte=CLEAN_OBSERVATIONS - 1, then=None)
        DriftReview.objects.filter(pk__in=keys).update(
            clean_streak=F("clean_streak") + 1,
            state=Case(last, default=F("state")),
            acknowledged_until=Case(ended, default=F("acknowledged_until")),
        )


def _shown_by_others(session: LabletSession) -> set[str]:
    drifting = SessionObservation.objects.filter(
        definition_id=session.definition_id, session__port_drift_open=True, session__status__in=ACTIVE
    ).exclude(session=session)
    shown = drifting.values_list("drift", flat=True)
    return {DriftItem.from_json(item).fingerprint for items in shown for item in items}


def close_drift(session_ids: Sequence[UUID]) -> None:
    """Close the drift of ended sessions; that they drifted remains recorded."""
    LabletSession.objects.filter(pk__in=session_ids, port_drift_open=True).update(port_drift_open=False)


def acknowledge_drift(
    *, review: DriftReview, reason: str, until: datetime | None, actor: Actor, now: datetime
) -> DriftReview:
    """Accept a deviation for a limited time; a port used by two sessions cannot be accepted."""
    until = until or now + DEFAULT_ACKNOWLEDGEMENT
    require_reason(reason)
    check_until(until, now=now)
    if review.kind == CONFLICT:
        raise StateConflict(_("A port conflict cannot be acknowledged; change the port of one of the labs."))
    with transaction.atomic():
        moved = DriftReview.objects.filter(pk=review.pk).exclude(state=ReviewState.RESOLVED)
        if not moved.update(
            state=ReviewState.ACKNOWLEDGED, acknowledged_until=until, reason=reason, actor=actor.label
        ):
            raise StateConflict(_("%(port)s is already resolved.") % {"port": review})
        log_change(
            review.definition,
            actor=actor,
            event="observation.drift_acknowledged",
            message=f"Port drift {review} acknowledged until {until:%Y-%m-%d}",
            reason=reason,
            after={"name": review.name, "kind": review.kind, "until": until},
            now=now,
        )
    review.refresh_from_db()
    return review


def check_until(until: datetime, *, now: datetime, most: timedelta = MAX_ACKNOWLEDGEMENT) -> None:
    """Raise an error unless the date is in the future and at most this far."""
    if not now < until <= now + most:
        text = _("Must be in the future and within %(days)s days.") % {"days": most.days}
        raise InvalidInput({"until": text})


def reopen_drift(*, review: DriftReview, reason: str, actor: Actor, now: datetime) -> DriftReview:
    """Withdraw an acknowledgement."""
    require_reason(reason)
    with transaction.atomic():
        acknowledged = DriftReview.objects.filter(pk=review.pk, state=ReviewState.ACKNOWLEDGED)
        if not acknowledged.update(state=ReviewState.OPEN, acknowledged_until=None):
            raise StateConflict(_("%(port)s is not acknowledged.") % {"port": review})
        log_change(
            review.definition,
            actor=actor,
            event="observation.drift_reopened",
            message=f"Port drift {review} reopened",
            reason=reason,
            now=now,
        )
    review.refresh_from_db()
    return review
