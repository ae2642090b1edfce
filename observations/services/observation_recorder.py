"""Recording what a controller saw of a live lab: one service, one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet, UUIDField

from lcm.cml.observation.model import ResourceObservation
from lcm.db.prepared_statements import Given, Json, Reading, Statement, inserting, run, updating, values_of
from lcm.domain.access import ControllerScope
from lcm.domain.actors import Actor
from lcm.domain.errors import NotFound, StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from lcm.selectors.controller_sessions import in_scope
from lcm.services.changelog import entry_for, logging_statement
from observations import metrics
from observations.arithmetic.drift import DriftItem, after_part, counted, worst_first
from observations.models import (
    DriftReview,
    ObservationRequest,
    RequestState,
    ReviewState,
    SessionObservation,
)
from observations.services.aggregates import ASKED_FOR, Change, change_samples, required_by
from observations.services.drift_reviews import note_drift
from observations.services.observation_validation import amounts_of, read_observation
from observations.services.outcomes import judge_revision
from observations.services.port_drift import (
    asking_for_plans,
    by_worker,
    compare,
    give_back_free,
    hold_leaked,
    plans_from,
)
from observations.services.requests import answer_requests
from observations.services.samples import (
    STEPS,
    course_from,
    is_memory_peak,
    judge,
    sample_of,
    take_amounts,
    take_course,
)
from observations.signals import port_drift_detected, resources_observed

ACCEPTED = (SessionStatus.RUNNING, SessionStatus.COLLECTING, SessionStatus.STOPPING)
SEEN_AT_MOST = 500
# What a recording looks at of a session, its definition and revision; the rest is long and not read.
NEEDED = (
    "status",
    "attempt",
    "pool",
    "observation_count",
    "observed_at",
    "port_drift_detected",
    "port_drift_open",
    *(f"definition__{name}" for name in ("name", "version", "topology_hash")),
    *(f"revision__{name}" for name in ASKED_FOR),
)


@dataclass(frozen=True)
class Recorded:
    """What LCM knows of a session after an observation."""

    session: LabletSession
    drift: list[DriftItem]
    was_new: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "session_id": str(self.session.pk),
            "observation_count": self.session.observation_count,
            "port_drift_detected": self.session.port_drift_detected,
            "port_drift_open": self.session.port_drift_open,
            "drift": [item.to_json() for item in self.drift],
            "observed_at": self.session.observed_at,
        }


def record_observation(
    *,
    session_id: UUID,
    body: Any,
    actor: Actor,
    now: datetime,
    scope: ControllerScope | None = None,
    text: str = "",
) -> Recorded:
    """Store an observation, count it once, compare it with the plan, and let it count for the definition.

    `scope` is that of the controller that posts: a session outside it is not found. `text` is the
    body as it came, if there is one: then it need not be written anew.
    """
    observation = read_observation(body, now=now)
    fingerprint = _fingerprint(observation)
    with transaction.atomic():
        found = _locked(session_id, scope)
        session, row = found.session, found.row
        if row is not None and fingerprint in row.seen:
            return Recorded(session, _items(row), was_new=False)
        recorded = _record(found, observation, Json(text) if text else body, fingerprint, actor, now)
        if session.is_asked_for:  # type: ignore[attr-defined]
            answer_requests(session_id=session.pk, observed_at=observation.observed_at, now=now)
    metrics.OBSERVATIONS.inc()
    return recorded


def _record(
    found: Found,
    observation: ResourceObservation,
    body: Any,
    fingerprint: str,
    actor: Actor,
    now: datetime,
) -> Recorded:
    session, row = found.session, found.row
    newest = row is None or observation.observed_at > row.observed_at
    before = sample_of(row) if row else None
    row = row or _new_row(session, observation, now)
    drift_before = _items(row)
    amounts = amounts_of(observation)
    take_amounts(row, amounts, newest=newest)
    _keep_peak(row, body, newest=newest, is_peak=is_memory_peak(row, amounts))
    if newest:
        row.observed_at, row.observed_resources = observation.observed_at, body
        take_course(row, course_from(session, found.steps))
    row.seen = [*row.seen, fingerprint][-SEEN_AT_MOST:]
    row.recorded_at = now
    judge(row)
    drift = drift_before
    if newest and observation.observed_ports is not None:
        is_whole = "observed_ports" not in observation.incomplete
        drift = _take_ports(found, row, observation.observed_ports, now, is_whole=is_whole)
    writing = [
        _writing(row),
        _updating_session(session, row, drift),
        *_logging(session, observation, drift, drift_before, actor, now),
    ]
    after = sample_of(row)
    change = Change(before, after, required_by(session.revision))
    change_samples(definition=session.definition, epoch=row.epoch, changes=[change], now=now, first=writing)
    if after is not None and not change.is_none:
        judge_revision(definition=session.definition, revision=session.revision, now=now)
    _tell(session, observation, drift, is_new=drift != drift_before, now=now)
    return Recorded(session, drift, was_new=True)


@dataclass(frozen=True)
class Found:
    """A session that stays as it is until the transaction ends, and what else a recording looks at."""

    session: LabletSession
    row: SessionObservation | None
    steps: list[Any]
    claims: list[Any]
    ports: list[Any]


def _sessions() -> QuerySet[LabletSession]:
    # Nobody changes its key: who refers to it, like a port that is handed over, need not wait.
    rows = LabletSession.objects.select_for_update(of=("self",), no_key=True)
    rows = rows.select_related("definition", "revision")
    asked = ObservationRequest.objects.filter(session=OuterRef("pk"), state=RequestState.OPEN)
    drift = DriftReview.objects.filter(definition=OuterRef("definition")).exclude(state=ReviewState.RESOLVED)
    rows = rows.annotate(is_asked_for=Exists(asked), has_reviews=Exists(drift)).only(*NEEDED)
    return rows.filter(pk=Given("session", UUIDField())).order_by()


_SESSION = Reading(_sessions)
_ROW = Reading(
    lambda: SessionObservation.objects.filter(session=Given("session", UUIDField())).defer(
        "observed_resources", "peak_resources"
    )
)


def _locked(session_id: UUID, scope: ControllerScope | None) -> Found:
    """Locked first, then looked at: each statement sees what was committed before it began."""
    sessions, rows, *others = run(
        _SESSION.of(session=session_id),
        _ROW.of(session=session_id),
        STEPS.of(session=session_id),
        *asking_for_plans(session_id),
    )
    if not sessions or (scope is not None and not _is_in(scope, sessions[0])):
        raise NotFound("There is nothing here, or nothing for you.")
    fresh: LabletSession = sessions[0]
    if fresh.status not in ACCEPTED:
        raise StateConflict(
            f"{fresh} is {fresh.get_status_display().lower()}; observations are taken while a session is "
            "running, collecting or stopping.",
            details={"status": fresh.status, "allowed": [status.value for status in ACCEPTED]},
        )
    return Found(fresh, rows[0] if rows else None, *others)


def _is_in(scope: ControllerScope, session: LabletSession) -> bool:
    if scope.slot_id is None:
        return session.pool in scope.pools
    return in_scope(LabletSession.objects.filter(pk=session.pk), scope).exists()


def _new_row(session: LabletSession, observation: ResourceObservation, now: datetime) -> SessionObservation:
    return SessionObservation(
        session=session,
        definition_id=session.definition_id,
        revision_id=session.revision_id,
        epoch=session.definition.topology_hash,
        observed_at=observation.observed_at,
        recorded_at=now,
    )


def _take_ports(
    found: Found, row: SessionObservation, observed: dict[str, int], now: datetime, *, is_whole: bool
) -> list[DriftItem]:
    """Of ports that were not read nothing is new: none is missing, free or as planned."""
    session, before = found.session, _items(row)
    seen: list[DriftItem] = []
    for plan, here in by_worker(plans_from(session, found.claims, found.ports), observed):
        differing = compare(plan, here)
        if is_whole:
            give_back_free(session=session, plan=plan, observed=here)
        hold_leaked(session=session, plan=plan, drift=differing, now=now)
        seen += differing
    seen = drift = sorted(seen, key=worst_first)
    row.observed_ports = observed if is_whole else {**(row.observed_ports or {}), **observed}
    if not is_whole:
        seen, drift = after_part(seen, before, observed)
    row.drift = [item.to_json() for item in drift]
    if seen or session.has_reviews:  # type: ignore[attr-defined]
        seen_before = {item.fingerprint for item in before}
        note_drift(session=session, drift=seen, seen_before=seen_before, now=now, is_whole=is_whole)
    return drift


def _keep_peak(row: SessionObservation, body: Any, *, newest: bool, is_peak: bool) -> None:
    """The observation with the most memory stays whole: as the newest, or beside a newer one with less."""
    if newest and is_peak:
        row.peak_resources = None
    elif is_peak:
        row.peak_resources = body
    elif newest:
        kept = SessionObservation.objects.filter(pk=row.pk, peak_resources__isnull=True)
        kept.update(peak_resources=F("observed_resources"))


def _writing(row: SessionObservation) -> Statement[Any]:
    """What was neither read nor changed, the long JSON, is not written."""
    if row._state.adding:
        return inserting(SessionObservation, {"session_id": row.session_id, **values_of(row)})
    untouched = tuple(row.get_deferred_fields())
    return updating(SessionObservation, row.session_id, values_of(row, without=untouched))


def _updating_session(
    session: LabletSession, row: SessionObservation, drift: Sequence[DriftItem]
) -> Statement[Any]:
    session.observation_count += 1
    session.observed_at, session.port_drift_open = row.observed_at, bool(drift)
    session.port_drift_detected |= session.port_drift_open
    names = ("observation_count", "observed_at", "port_drift_detected", "port_drift_open")
    return updating(LabletSession, session.pk, {name: getattr(session, name) for name in names})


def _logging(
    session: LabletSession,
    observation: ResourceObservation,
    drift: list[DriftItem],
    drift_before: list[DriftItem],
    actor: Actor,
    now: datetime,
) -> list[Statement[Any]]:
    incomplete = "" if observation.is_complete else ", incomplete"
    after: dict[str, Any] = {
        "total_cpu_cores": observation.total_cpu_cores,
        "total_memory_mb": observation.total_memory_mb,
        "used_cpu_cores": observation.used_cpu_cores,
        "used_memory_mb": observation.used_memory_mb,
        "missing": list(observation.incomplete[:20]),
    }
    message = f"Observation {session.observation_count} recorded{incomplete}"
    told = [
        entry_for(session, actor=actor, event="resources_observed", message=message, after=after, now=now)
    ]
    if drift != drift_before:
        message = f"Port drift found: {counted(drift)}" if drift else "Ports are as planned again"
        event = "port_drift_detected" if drift else "port_drift_cleared"
        after = {"drift": [item.to_json() for item in drift[:50]]}
        told.append(entry_for(session, actor=actor, event=event, message=message, after=after, now=now))
    return [logging_statement(entry) for entry in told]


def _tell(
    session: LabletSession,
    observation: ResourceObservation,
    drift: list[DriftItem],
    *,
    is_new: bool,
    now: datetime,
) -> None:
    if drift and is_new:
        metrics.DRIFT.inc()
        port_drift_detected.send(SessionObservation, session=session, drift=drift, now=now)
    resources_observed.send(SessionObservation, session=session, observation=observation, now=now)


def _items(row: SessionObservation) -> list[DriftItem]:
    return [DriftItem.from_json(item) for item in row.drift]


def _fingerprint(observation: ResourceObservation) -> str:
    """The controller, the lab and the time: the same however often an observation is posted."""
    controller, lab = observation.controller or observation.observer, observation.lab_id or ""
    seen = f"{controller} {lab} {observation.observed_at.timestamp()}"
    return hashlib.sha256(seen.encode()).hexdigest()[:16]
