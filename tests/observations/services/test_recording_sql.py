"""The SQL of a recording reads the same rows as querysets, and writes every column of the model."""

from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import transaction
from django.db.models import Exists, OuterRef

from lcm.db.statements import column_values, insert_statement, run_statements, update_statement
from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletDefinition, LabletSession, SessionTransition
from observations.models import (
    DefinitionAssessment,
    DriftReview,
    ObservationRequest,
    ResourceAggregate,
    SessionObservation,
)
from observations.services.recording_sql import (
    DEFINITION_COLUMNS,
    REVISION_COLUMNS,
    SESSION_COLUMNS,
    lock_assessment_row,
    lock_session,
    read_aggregates,
    read_claims,
    read_newest_samples,
    read_ports,
    read_review,
    read_row,
    read_steps,
)
from observations.services.requests import request_observation
from observations.services.samples import PEAKS
from scheduling.models import Phase, PortAllocation, Reservation
from tests.support.observed_labs import make_past_session, on_slot, post, seen

pytestmark = pytest.mark.django_db


@pytest.fixture
def observed_session(active_definition, project, operator, now):
    """Return a session with a drifting port, observed once, on a worker with another session."""
    first, second = (make_past_session(active_definition, project, operator, ended=now) for _ in range(2))
    on_slot(first, ports={"r1_serial": 5001})
    on_slot(second, ports={"r1_serial": 5003})
    post(first, seen(now, ports={"r1_serial": 5001, "r9_vnc": 6001}), now)
    post(second, seen(now - timedelta(minutes=1)), now)
    return LabletSession.objects.get(pk=first.pk)


def read(statement):
    with transaction.atomic():
        return run_statements(statement)[0]


def values(row, names=None):
    """Return columns of a row as text, which shows their types and decimal places too."""
    return {name: repr(getattr(row, name)) for name in names or column_values(row)}


def test_a_session_is_read_with_its_definition_and_revision(observed_session):
    found = read(lock_session(observed_session.pk))
    assert found == observed_session
    assert values(found, SESSION_COLUMNS) == values(observed_session, SESSION_COLUMNS)
    for name, columns in (("definition", DEFINITION_COLUMNS), ("revision", REVISION_COLUMNS)):
        mine, expected = getattr(found, name), getattr(observed_session, name)
        assert mine == expected
        assert values(mine, columns) == values(expected, columns)
        assert not set(columns) & mine.get_deferred_fields()
    assert read(lock_session(uuid4())) is None


def test_requests_and_drift_reviews_of_a_session_are_found(
    active_definition, project, operator, observed_session, now
):
    assert (found_flags(observed_session)) == (False, True)
    DriftReview.objects.update(state="resolved")
    assert (found_flags(observed_session)) == (False, False)
    running = make_past_session(active_definition, project, operator, ended=now, until=SessionStatus.RUNNING)
    request_observation(session=running, actor=SYSTEM, now=now)
    assert (found_flags(running)) == (True, False)
    ObservationRequest.objects.update(state="completed")
    assert (found_flags(running)) == (False, False)


def found_flags(session):
    found = read(lock_session(session.pk))
    return found.has_open_request, found.has_reviews


def test_the_row_of_a_session_is_read_without_its_observations(observed_session):
    found, expected = read(read_row(observed_session.pk)), observed_session.observation
    assert found == expected
    names = column_values(expected, without=("observed_resources", "peak_resources"))
    assert values(found, names) == values(expected, names)
    assert found.get_deferred_fields() == {"observed_resources", "peak_resources"}
    assert read(read_row(uuid4())) is None


def test_steps_claims_and_ports_equal_those_of_querysets(observed_session):
    key = observed_session.pk
    steps = SessionTransition.objects.filter(session=key).order_by("at")
    assert lists(read(read_steps(key))) == lists(steps.values_list("to_status", "at", "attempt"))
    mine = Reservation.objects.filter(session=key, phase=Phase.READY, slot=OuterRef("slot"))
    claims = Reservation.objects.filter(Exists(mine), phase=Phase.READY)
    columns = "slot_id", "session_id", "session__port_drift_open", "spread"
    assert len(claims) == 2
    assert sorted(lists(read(read_claims(key)))) == sorted(lists(claims.values_list(*columns)))
    ports = PortAllocation.objects.filter(slot=observed_session.reservations.get().slot)
    columns = "pk", "port", "name", "session_id", "leaked"
    assert len(ports) == 3
    assert sorted(lists(read(read_ports(key)))) == sorted(lists(ports.values_list(*columns)))
    assert (read(read_claims(uuid4())), read(read_ports(uuid4()))) == ([], [])


def lists(rows):
    return [repr(list(row)) for row in rows]


def test_assessment_and_aggregates_equal_those_of_querysets(observed_session):
    definition = observed_session.definition
    assessment = DefinitionAssessment.objects.get(definition=definition)
    assert values(read(lock_assessment_row(definition.pk))) == values(assessment)
    aggregates = read(read_aggregates(definition.pk, definition.topology_hash))
    assert list(map(values, aggregates)) == list(map(values, ResourceAggregate.objects.all()))
    assert len(aggregates) == 1
    newest = SessionObservation.objects.order_by("-observed_at").values_list("observed_at", *PEAKS)
    assert lists(read(read_newest_samples(definition.pk, definition.topology_hash, 2))) == lists(newest)
    assert len(read(read_newest_samples(definition.pk, definition.topology_hash, 1))) == 1
    assert read(lock_assessment_row(uuid4())) is None
    assert read(read_aggregates(definition.pk, "another")) == []
    assert read(read_newest_samples(definition.pk, "another", 2)) == []


def test_the_review_of_a_definition_is_read_with_its_current_revision(observed_session):
    LabletDefinition.objects.update(needs_review=True, review_reasons=["too small"])
    found = read(read_review(observed_session.definition_id))
    assert (found.needs_review, found.reasons) == (True, ["too small"])
    expected = LabletDefinition.objects.get().current_revision
    assert found.revision == expected
    assert values(found.revision, REVISION_COLUMNS) == values(expected, REVISION_COLUMNS)
    LabletDefinition.objects.update(current_revision=None)
    assert read(read_review(observed_session.definition_id)).revision is None
    assert read(read_review(uuid4())) is None


def test_every_column_of_an_observation_is_written_as_the_model_writes_it(observed_session, now):
    expected = observed_session.observation
    for index, name in enumerate(PEAKS):
        setattr(expected, name, Decimal(index) / 8)
    expected.drift, expected.seen = [{"a": "it's %s"}], ["1", "2"]
    expected.excluded_reason, expected.excluded_by = "broken \\ lab", "olga"
    expected.save()
    expected.refresh_from_db()
    row = column_values(expected)
    assert set(row) == {field.attname for field in SessionObservation._meta.concrete_fields} - {"session_id"}
    SessionObservation.objects.all().delete()
    run_statements(insert_statement(SessionObservation, {"session_id": expected.pk, **row}))
    assert values(SessionObservation.objects.get()) == values(expected)
    SessionObservation.objects.update(**dict.fromkeys(PEAKS), seen=[], drift=[], observed_ports=None)
    run_statements(update_statement(SessionObservation, expected.pk, row))
    assert values(SessionObservation.objects.get()) == values(expected)
