"""Request sessions: validation, first transition and kernels."""

from datetime import timedelta
from decimal import Decimal

import pytest

from lcm.domain.errors import InvalidInput
from lcm.models import (
    ChangeLog,
    DefinitionStatus,
    Kernel,
    LabletDefinition,
    LabletSession,
    Priority,
    SessionTransition,
)
from lcm.services.definitions import revise_definition, set_definition_status
from lcm.services.sessions import create_session
from tests.support.factories import make_definition, make_project

HOUR = timedelta(hours=1)


@pytest.fixture
def request_session(active_definition, project, operator, as_operator, now):
    """`request_session(field=value)`: request two hours of the small lab, with these arguments changed."""

    def request_session(**changes):
        arguments = {
            "definition": active_definition,
            "project": project,
            "owner": operator,
            "starts_at": now,
            "ends_at": now + 2 * HOUR,
        }
        return create_session(**(arguments | changes), actor=as_operator, now=now)

    return request_session


def rejected_fields(request_session, **changes):
    """Return the errors by field and check that nothing was stored."""
    with pytest.raises(InvalidInput) as caught:
        request_session(**changes)
    assert not LabletSession.objects.exists()
    assert not Kernel.objects.exists()
    assert not SessionTransition.objects.exists()
    assert not ChangeLog.objects.filter(event="session.requested").exists()
    return caught.value.fields


@pytest.mark.parametrize(
    ("status", "status_text"),
    [(DefinitionStatus.DRAFT, "draft"), (DefinitionStatus.DEPRECATED, "deprecated")],
)
def test_only_an_active_definition_can_be_requested(status, status_text, request_session):
    definition = make_definition("old-lab", status=status)
    assert rejected_fields(request_session, definition=definition) == {
        "definition": [f"old-lab v1.0 is {status_text}; only active definitions can be requested."]
    }


def test_a_definition_without_requirements_cannot_be_requested(request_session, active_definition):
    LabletDefinition.objects.filter(pk=active_definition.pk).update(current_revision=None)
    assert list(rejected_fields(request_session, definition=active_definition)) == ["definition"]


def test_the_owner_must_be_a_member_of_the_project(request_session, stranger):
    assert rejected_fields(request_session, owner=stranger) == {
        "owner": ["stan is not a member of academy / ccna."]
    }


def test_membership_of_another_project_does_not_count(request_session, operator):
    assert list(
        rejected_fields(request_session, project=make_project("academy", "ccnp"), owner=operator)
    ) == ["owner"]


@pytest.mark.parametrize(
    ("starts", "ends", "field", "message"),
    [
        (0 * HOUR, 0 * HOUR, "ends_at", "end after it starts"),
        (2 * HOUR, 1 * HOUR, "ends_at", "end after it starts"),
        (-1 * HOUR, 1 * HOUR, "starts_at", "in the past"),
        (timedelta(minutes=-16), 1 * HOUR, "starts_at", "in the past"),
        (0 * HOUR, 9 * HOUR, "ends_at", "at most 8 hours"),
        (0 * HOUR, 8 * HOUR + timedelta(seconds=1), "ends_at", "at most 8 hours"),
        (24 * HOUR, 33 * HOUR, "ends_at", "at most 8 hours"),
    ],
)
def test_an_invalid_timeslot_is_rejected(starts, ends, field, message, request_session, now):
    fields = rejected_fields(request_session, starts_at=now + starts, ends_at=now + ends)
    assert list(fields) == [field]
    assert message in fields[field][0]


@pytest.mark.parametrize(
    ("field", "value"), [("priority", 51), ("priority", -1), ("priority", 0), ("pool", "p" * 64)]
)
def test_a_value_out_of_range_is_rejected(field, value, request_session):
    assert field in rejected_fields(request_session, **{field: value})


def test_all_errors_are_returned_at_once(request_session, definition, stranger, now):
    fields = rejected_fields(request_session, definition=definition, owner=stranger, ends_at=now)
    assert set(fields) == {"definition", "owner", "ends_at"}


@pytest.mark.parametrize(
    ("starts", "ends"), [(timedelta(minutes=-14), HOUR), (0 * HOUR, 8 * HOUR), (100 * HOUR, 101 * HOUR)]
)
def test_a_valid_timeslot_is_accepted(starts, ends, request_session, now):
    session = request_session(starts_at=now + starts, ends_at=now + ends)
    assert LabletSession.objects.get(pk=session.pk).duration == ends - starts


def test_a_session_starts_pending_with_a_transition_and_kernels(request_session, now):
    session = request_session()
    session.refresh_from_db()
    assert (session.status, session.status_since, session.attempt) == ("PENDING", now, 1)
    step = session.transitions.get()
    assert (step.from_status, step.to_status, step.actor, step.at) == ("", "PENDING", "otto", now)
    assert list(session.kernels.values_list("node_label", "status")) == [
        ("host", "PENDING"),
        ("r1", "PENDING"),
        ("r2", "PENDING"),
    ]


def test_the_change_log_has_the_request(request_session, operator):
    session = request_session(priority=Priority.HIGH)
    entry = ChangeLog.objects.get(event="session.requested")
    assert entry.object_id == str(session.pk)
    assert entry.user_id == operator.pk
    assert entry.message == "campus v1.0 requested for otto"
    assert entry.after["priority"] == 90
    assert entry.after["project"] == "academy / ccna"
    assert entry.after["revision"] == 1


def test_a_session_waits_in_the_definitions_pool_unless_another_is_requested(request_session):
    assert request_session().pool == "cml-eu"
    assert request_session(pool="cml-us").pool == "cml-us"


def test_a_session_keeps_the_revision_it_was_requested_with(
    request_session, active_definition, as_admin, now
):
    before = request_session()
    revise_definition(
        definition=active_definition,
        requirements={"cpu_cores": Decimal(8)},
        based_on=1,
        reason="measured",
        actor=as_admin,
        now=now,
    )
    after = request_session()
    pinned = {each.pk: each.revision.number for each in LabletSession.objects.select_related("revision")}
    assert pinned == {before.pk: 1, after.pk: 2}
    assert before.kernels.get(node_label="r1").cpu_cores == Decimal(2)
    assert after.kernels.get(node_label="r1").cpu_cores == Decimal(4)


def test_the_stored_definition_counts_not_the_callers_copy(request_session, active_definition, as_admin):
    """The caller's copy may be stale: the stored status and revision count."""
    fresh = LabletDefinition.objects.get(pk=active_definition.pk)
    set_definition_status(definition=fresh, status=DefinitionStatus.DEPRECATED, reason="old", actor=as_admin)
    assert list(rejected_fields(request_session, definition=active_definition)) == ["definition"]


def test_a_past_timeslot_is_rejected(request_session, now):
    slot = {"starts_at": now - timedelta(minutes=14), "ends_at": now - timedelta(minutes=13)}
    assert list(rejected_fields(request_session, **slot)) == ["ends_at"]


def test_a_deactivated_owner_is_rejected(request_session, operator):
    operator.is_active = False
    assert list(rejected_fields(request_session, owner=operator)) == ["owner"]
