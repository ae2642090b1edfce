"""SQL of recording an observation, which every controller does for every session.

Each function returns a statement for `run_statements`. Tests compare them with querysets.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from lcm.db.statements import Columns, Statement, lock_clause
from lcm.models import DefinitionRevision, LabletDefinition, LabletSession, SessionTransition
from observations.arithmetic.measures import MEASURED
from observations.models import (
    DefinitionAssessment,
    DriftReview,
    ObservationRequest,
    RequestState,
    ResourceAggregate,
    ReviewState,
    SessionObservation,
)
from observations.services.samples import PEAKS
from scheduling.models import Phase, PortAllocation, Reservation

# Columns of a revision that an assessment reads.
REVISION_COLUMNS = ("number", *MEASURED, "outcome")
# Columns that a recording needs from session and definition; the others are long.
SESSION_COLUMNS = (
    "definition",
    "revision",
    "status",
    "attempt",
    "pool",
    "observation_count",
    "observed_at",
    "port_drift_detected",
    "port_drift_open",
)
DEFINITION_COLUMNS = ("name", "version", "topology_hash")


class CurrentReview(NamedTuple):
    """Whether a definition needs a review, why, and its current revision."""

    needs_review: bool
    reasons: list[str]
    revision: DefinitionRevision | None


# slot, session, whether the session has open port drift, whether it is spread
Claim: TypeAlias = "tuple[UUID, UUID, bool, bool]"
# key, port, name, session, leaked
Port: TypeAlias = "tuple[UUID, int, str, UUID | None, bool]"

_SESSIONS = LabletSession._meta.db_table
_DEFINITIONS = LabletDefinition._meta.db_table
_REVISIONS = DefinitionRevision._meta.db_table
_RESERVATIONS = Reservation._meta.db_table
_ASSESSMENTS = DefinitionAssessment._meta.db_table

_SESSION = Columns.of_object(LabletSession, SESSION_COLUMNS)
_DEFINITION = Columns.of_object(LabletDefinition, DEFINITION_COLUMNS)
_REVISION = Columns.of_object(DefinitionRevision, REVISION_COLUMNS)
_REVIEW = Columns(LabletDefinition, ["needs_review", "review_reasons"])
_ROW = Columns.of_object(SessionObservation, without=["observed_resources", "peak_resources"])
_STEP = Columns(SessionTransition, ["to_status", "at", "attempt"])
_CLAIM = Columns(Reservation, ["slot", "session"])
_PORT = Columns(PortAllocation, ["id", "port", "name", "session", "leaked"])
_ASSESSMENT = Columns.of_object(DefinitionAssessment)
_AGGREGATE = Columns.of_object(ResourceAggregate)
_NEWEST = Columns(SessionObservation, ["observed_at", *PEAKS])


def lock_session(session_id: UUID) -> Statement[LabletSession | None]:
    """Lock a session and read it with its definition and revision.

    `has_open_request`: an observation of it was requested. `has_reviews`: its definition has
    unresolved port drift. NO KEY: the key never changes, so rows that reference it, such as ports, need not
    wait.
    """
    sql = f"""
        SELECT {_SESSION.sql}, {_DEFINITION.sql}, {_REVISION.sql},
            EXISTS (SELECT 1 FROM {ObservationRequest._meta.db_table} AS request
                WHERE request.session_id = {_SESSIONS}.id AND request.state = %s),
            EXISTS (SELECT 1 FROM {DriftReview._meta.db_table} AS drift
                WHERE drift.definition_id = {_SESSIONS}.definition_id AND drift.state <> %s)
        FROM {_SESSIONS}
        JOIN {_DEFINITIONS} ON {_DEFINITIONS}.id = {_SESSIONS}.definition_id
        JOIN {_REVISIONS} ON {_REVISIONS}.id = {_SESSIONS}.revision_id
        WHERE {_SESSIONS}.id = %s {lock_clause(f"FOR NO KEY UPDATE OF {_SESSIONS}")}
    """  # noqa: S608
    return Statement(sql, [RequestState.OPEN, ReviewState.RESOLVED, session_id], _to_session)


def _to_session(rows: list[Any]) -> LabletSession | None:
    if not rows:
        return None
    own, definition, revision, (has_open_request, has_reviews) = _parts(
        rows[0], _SESSION, _DEFINITION, _REVISION
    )
    session = _SESSION.to_object(own)
    session.definition, session.revision = _DEFINITION.to_object(definition), _REVISION.to_object(revision)
    vars(session).update(has_open_request=bool(has_open_request), has_reviews=bool(has_reviews))
    return session


def _parts(row: tuple[Any, ...], *columns: Columns[Any]) -> list[tuple[Any, ...]]:
    """Return the values of each of these columns, and the values after them."""
    parts = []
    for each in columns:
        parts.append(row[: len(each)])
        row = row[len(each) :]
    return [*parts, row]


def read_row(session_id: UUID) -> Statement[SessionObservation | None]:
    """Read the row of a session, without the observations themselves."""
    sql = f"SELECT {_ROW.sql} FROM {SessionObservation._meta.db_table} WHERE session_id = %s"  # noqa: S608
    return Statement(sql, [session_id], lambda rows: _ROW.to_object(rows[0]) if rows else None)


def read_steps(session_id: UUID) -> Statement[list[tuple[str, datetime, int]]]:
    """Read status, time and attempt of each transition."""
    table = SessionTransition._meta.db_table
    sql = f"SELECT {_STEP.sql} FROM {table} WHERE session_id = %s ORDER BY at"  # noqa: S608
    return Statement(sql, [session_id], _STEP.to_rows)


def read_claims(session_id: UUID) -> Statement[list[Claim]]:
    """Read the sessions on the slot of a session."""
    sql = f"""
        SELECT {_CLAIM.sql}, {_SESSIONS}.port_drift_open, {_RESERVATIONS}.spread
        FROM {_RESERVATIONS} LEFT JOIN {_SESSIONS} ON {_SESSIONS}.id = {_RESERVATIONS}.session_id
        WHERE {_RESERVATIONS}.phase = %s AND {_RESERVATIONS}.slot_id = ({_SLOT})
    """  # noqa: S608
    return Statement(sql, [Phase.READY, session_id, Phase.READY], _CLAIM.to_rows)


def read_ports(session_id: UUID) -> Statement[list[Port]]:
    """Read the ports on the slot of a session."""
    sql = f"SELECT {_PORT.sql} FROM {PortAllocation._meta.db_table} WHERE slot_id = ({_SLOT})"  # noqa: S608
    return Statement(sql, [session_id, Phase.READY], _PORT.to_rows)


_SLOT = f"SELECT slot_id FROM {_RESERVATIONS} AS mine WHERE mine.session_id = %s AND mine.phase = %s LIMIT 1"  # noqa: S608


def lock_assessment_row(definition_id: UUID) -> Statement[DefinitionAssessment | None]:
    sql = f"SELECT {_ASSESSMENT.sql} FROM {_ASSESSMENTS} WHERE definition_id = %s {lock_clause('FOR UPDATE')}"  # noqa: S608
    return Statement(sql, [definition_id], lambda rows: _ASSESSMENT.to_object(rows[0]) if rows else None)


def read_review(definition_id: UUID) -> Statement[CurrentReview | None]:
    sql = f"""
        SELECT {_REVIEW.sql}, {_REVISION.sql}
        FROM {_DEFINITIONS} LEFT JOIN {_REVISIONS} ON {_REVISIONS}.id = {_DEFINITIONS}.current_revision_id
        WHERE {_DEFINITIONS}.id = %s
    """  # noqa: S608
    return Statement(sql, [definition_id], _to_review)


def _to_review(rows: list[Any]) -> CurrentReview | None:
    if not rows:
        return None
    review, revision, _ = _parts(rows[0], _REVIEW, _REVISION)
    needs_review, reasons = _REVIEW.to_values(review)
    return CurrentReview(needs_review, reasons, _REVISION.to_object(revision) if revision[0] else None)


def read_aggregates(definition_id: UUID, epoch: str) -> Statement[list[ResourceAggregate]]:
    sql = (
        f"SELECT {_AGGREGATE.sql} FROM {ResourceAggregate._meta.db_table} "  # noqa: S608
        "WHERE definition_id = %s AND epoch = %s"
    )
    return Statement(sql, [definition_id, epoch], _AGGREGATE.to_objects)


def read_newest_samples(definition_id: UUID, epoch: str, count: int) -> Statement[list[Any]]:
    """Read time and peaks of the newest samples, newest first."""
    sql = f"""
        SELECT {_NEWEST.sql} FROM {SessionObservation._meta.db_table}
        WHERE definition_id = %s AND epoch = %s AND is_sample
        ORDER BY observed_at DESC, session_id DESC LIMIT %s
    """  # noqa: S608
    return Statement(sql, [definition_id, epoch, count], _NEWEST.to_rows)
