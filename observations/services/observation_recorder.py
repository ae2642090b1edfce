"""Recording of observations posted by controllers, in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from lcm.cml.observation.model import ResourceObservation
from lcm.db.statements import (
    RawJson,
    Statement,
    column_values,
    insert_statement,
    run_statements,
    update_statement,
)
from lcm.domain.access import ControllerScope
from lcm.domain.actors import Actor
from lcm.domain.errors import NotFound
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from lcm.selectors.controller_sessions import sessions_in_scope
from lcm.services.changelog import build_entry, change_log_statement
from lcm.services.sessions import wrong_status
from observations import metrics
from observations.arithmetic.drift import (
    CONFLICT,
    DriftItem,
    compare_ports,
    kinds_text,
    merge_partial,
    worst_first,
)
from observations.models import SessionObservation
from observations.services.aggregates import change_sample
from observations.services.drift_reviews import update_drift_reviews
from observations.services.observation_validation import amounts_of, parse_observation
from observations.services.outcomes import decide_outcome
from observations.services.port_drift import (
    by_worker,
    plans_from,
    release_free_ports,
    reserve_leaked_ports,
)
from observations.services.recording_sql import (
    Claim,
    Port,
    lock_session,
    read_claims,
    read_ports,
    read_row,
    read_steps,
)
from observations.services.requests import complete_requests
from observations.services.samples import (
    apply_amounts,
    apply_timeline,
    is_memory_peak,
    sample_of,
    update_is_sample,
)

OBSERVABLE_STATUSES = (SessionStatus.RUNNING, SessionStatus.COLLECTING, SessionStatus.STOPPING)
MAX_FINGERPRINTS = 500


@dataclass(frozen=True)
class RecordingResult:
    """Session and drift after an observation was recorded."""

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
    body: object,
    actor: Actor,
    now: datetime,
    scope: ControllerScope | None = None,
    text: str = "",
) -> RecordingResult:
    """Store an observation once, compare it with the plan, and update the definition's aggregate.

    `scope` is the scope of the posting controller; a session outside of it is not found. `text` is the body
    as received, if available, so that it need not be serialized again.
    """
    observation = parse_observation(body, now=now)
    fingerprint = _fingerprint(observation)
    with transaction.atomic():
        found = _locked(session_id, scope)
        session, row = found.session, found.row
        if row is not None and fingerprint in row.seen:
            return RecordingResult(session, _items(row), was_new=False)
        recorded = _record(found, observation, RawJson(text) if text else body, fingerprint, actor, now)
        if session.has_open_request:  # type: ignore[attr-defined]
            complete_requests(session_id=session.pk, observed_at=observation.observed_at, now=now)
    metrics.OBSERVATIONS.inc()
    return recorded


def _record(
    found: LockedSession,
    observation: ResourceObservation,
    body: object,
    fingerprint: str,
    actor: Actor,
    now: datetime,
) -> RecordingResult:
    session, row = found.session, found.row
    newest = row is None or observation.observed_at > row.observed_at
    before = sample_of(row) if row else None
    row = row or SessionObservation(session=session, epoch=session.definition.topology_hash)
    row.definition, row.revision = session.definition, session.revision
    drift_before = _items(row)
    amounts = amounts_of(observation)
    apply_amounts(row, amounts, newest=newest)
    _keep_peak(row, body, newest=newest, is_peak=is_memory_peak(row, amounts))
    if newest:
        row.observed_at, row.observed_resources = observation.observed_at, body
        apply_timeline(row, session, found.steps)
    row.seen = [*row.seen, fingerprint][-MAX_FINGERPRINTS:]
    row.recorded_at = now
    update_is_sample(row)
    drift = drift_before
    if newest and observation.observed_ports is not None:
        is_whole = "observed_ports" not in observation.incomplete
        drift = _compare_ports(found, row, observation.observed_ports, now, is_whole=is_whole)
    writing = [
        _writing(row),
        _updating_session(session, row, drift),
        *_logging(session, observation, drift, drift_before, actor, now),
    ]
    if change_sample(row=row, before=before, now=now, first=writing) and row.is_sample:
        decide_outcome(definition=session.definition, revision=session.revision, now=now)
    if drift and drift != drift_before:
        metrics.DRIFT.inc()
    return RecordingResult(session, drift, was_new=True)


@dataclass(frozen=True)
class LockedSession:
    """A session locked until the transaction ends, with the rows that a recording needs."""

    session: LabletSession
    row: SessionObservation | None
    steps: list[tuple[str, datetime, int]]
    claims: list[Claim]
    ports: list[Port]


def _locked(session_id: UUID, scope: ControllerScope | None) -> LockedSession:
    """Lock the session, then read: each statement sees what was committed before it started."""
    fresh, *others = run_statements(
        lock_session(session_id),
        read_row(session_id),
        read_steps(session_id),
        read_claims(session_id),
        read_ports(session_id),
    )
    if fresh is None or (scope is not None and not _is_in(scope, fresh)):
        raise NotFound(_("Session not found, or outside the scope of this token."))
    if fresh.status not in OBSERVABLE_STATUSES:
        text = _(
            "%(session)s is %(status)s; observations are accepted only while a session is running, "
            "collecting or stopping."
        )
        raise wrong_status(fresh, text, allowed=[status.value for status in OBSERVABLE_STATUSES])
    return LockedSession(fresh, *others)


def _is_in(scope: ControllerScope, session: LabletSession) -> bool:
    if scope.slot_id is None:
        return session.pool in scope.pools
    return sessions_in_scope(LabletSession.objects.filter(pk=session.pk), scope).exists()


def _compare_ports(
    found: LockedSession, row: SessionObservation, observed: dict[str, int], now: datetime, *, is_whole: bool
) -> list[DriftItem]:
    """Compare ports with the plan; unread ports are neither missing, free nor as planned."""
    session, before = found.session, _items(row)
    seen: list[DriftItem] = []
    for plan, here in by_worker(plans_from(session, found.claims, found.ports), observed):
        differing = compare_ports(plan.allocated, here, plan.held_by_others)
        if is_whole:
            release_free_ports(session=session, plan=plan, observed=here)
        reserve_leaked_ports(session=session, plan=plan, drift=differing, now=now)
        seen += differing
    seen = drift = sorted(seen, key=worst_first)
    row.observed_ports = observed if is_whole else {**(row.observed_ports or {}), **observed}
    if not is_whole:
        seen, drift = merge_partial(seen, before, observed)
    row.drift = [item.to_json() for item in drift]
    if seen or session.has_reviews:  # type: ignore[attr-defined]
        seen_before = {item.fingerprint for item in before}
        update_drift_reviews(session=session, drift=seen, seen_before=seen_before, now=now, is_whole=is_whole)
    return drift


def _keep_peak(row: SessionObservation, body: object, *, newest: bool, is_peak: bool) -> None:
    """Keep the observation with the most memory in full: as the newest, or beside a newer one."""
    if newest and is_peak:
        row.peak_resources = None
    elif is_peak:
        row.peak_resources = body
    elif newest:
        kept = SessionObservation.objects.filter(pk=row.pk, peak_resources__isnull=True)
        kept.update(peak_resources=F("observed_resources"))


def _writing(row: SessionObservation) -> Statement[None]:
    """Return the statement that saves the row, without unchanged JSON columns that were not read."""
    if row._state.adding:
        return insert_statement(SessionObservation, {"session_id": row.session_id, **column_values(row)})
    untouched = tuple(row.get_deferred_fields())
    return update_statement(SessionObservation, row.session_id, column_values(row, without=untouched))


def _updating_session(
    session: LabletSession, row: SessionObservation, drift: Sequence[DriftItem]
) -> Statement[None]:
    session.observation_count += 1
    session.observed_at, session.port_drift_open = row.observed_at, bool(drift)
    session.port_drift_detected |= session.port_drift_open
    names = ("observation_count", "observed_at", "port_drift_detected", "port_drift_open")
    return update_statement(LabletSession, session.pk, {name: getattr(session, name) for name in names})


def _logging(
    session: LabletSession,
    observation: ResourceObservation,
    drift: list[DriftItem],
    drift_before: list[DriftItem],
    actor: Actor,
    now: datetime,
) -> list[Statement[None]]:
    incomplete = "" if observation.is_complete else ", incomplete"
    after: dict[str, Any] = {
        "total_cpu_cores": observation.total_cpu_cores,
        "total_memory_mb": observation.total_memory_mb,
        "used_cpu_cores": observation.used_cpu_cores,
        "used_memory_mb": observation.used_memory_mb,
        "missing": list(observation.incomplete[:20]),
    }
    message = f"Observation {session.observation_count} recorded{incomplete}"
    entries = [
        build_entry(
            session,
            actor=actor,
            event="observation.resources_observed",
            message=message,
            after=after,
            now=now,
        )
    ]
    if drift != drift_before:
        message = f"Port drift found: {kinds_text(drift)}" if drift else "Ports match the plan again"
        event = "observation.port_drift_detected" if drift else "observation.port_drift_cleared"
        after = {"drift": [item.to_json() for item in drift[:50]]}
        entries.append(build_entry(session, actor=actor, event=event, message=message, after=after, now=now))
    conflicts = [item for item in drift if item.kind == CONFLICT and item not in drift_before]
    if conflicts:
        message = f"Port conflict found: {', '.join(item.name for item in conflicts)}"
        event = "observation.port_conflict_detected"
        after = {"conflicts": [item.to_json() for item in conflicts[:50]]}
        entries.append(build_entry(session, actor=actor, event=event, message=message, after=after, now=now))
    return [change_log_statement(entry) for entry in entries]


def _items(row: SessionObservation) -> list[DriftItem]:
    return [DriftItem.from_json(item) for item in row.drift]


def _fingerprint(observation: ResourceObservation) -> str:
    """Return a hash of controller, lab and time, equal for repeated posts of an observation."""
    controller, lab = observation.controller or observation.observer, observation.lab_id or ""
    seen = f"{controller} {lab} {observation.observed_at.timestamp()}"
    return hashlib.sha256(seen.encode()).hexdigest()[:16]
