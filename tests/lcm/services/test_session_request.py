"""Asking for a session: what is refused, and what a session is made of."""

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
def ask(active_definition, project, operator, as_operator, now):
    """`ask(field=value)`: ask for two hours of the small lab, with some things different."""

    def ask(**different):
        asked = {
            "definition": active_definition,
            "project": project,
            "owner": operator,
            "starts_at": now,
            "ends_at": now + 2 * HOUR,
        }
        return create_session(**(asked | different), actor=as_operator, now=now)

    return ask


def refused(ask, **different):
    """The fields named in the refusal; nothing may have been stored."""
    with pytest.raises(InvalidInput) as caught:
        ask(**different)
    assert not LabletSession.objects.exists()
    assert not Kernel.objects.exists()
    assert not SessionTransition.objects.exists()
    assert not ChangeLog.objects.filter(event="session_created").exists()
    return caught.value.fields


@pytest.mark.parametrize(
    ("status", "word"), [(DefinitionStatus.DRAFT, "draft"), (DefinitionStatus.DEPRECATED, "deprecated")]
)
def test_only_an_active_definition_can_be_asked_for(status, word, ask):
    definition = make_definition("old-lab", status=status)
    assert refused(ask, definition=definition) == {
        "definition": [f"old-lab v1.0 is {word}; only active definitions can be requested."]
    }


def test_a_definition_without_requirements_cannot_be_asked_for(ask, active_definition):
    LabletDefinition.objects.filter(pk=active_definition.pk).update(current_revision=None)
    assert list(refused(ask, definition=active_definition)) == ["definition"]


def test_the_owner_has_to_be_a_member(ask, stranger):
    assert refused(ask, owner=stranger) == {"owner": ["stan is not a member of academy / ccna."]}


def test_membership_of_another_project_does_not_count(ask, operator):
    assert list(refused(ask, project=make_project("academy", "ccnp"), owner=operator)) == ["owner"]


@pytest.mark.parametrize(
    ("starts", "ends", "field", "words"),
    [
        (0 * HOUR, 0 * HOUR, "ends_at", "end after it starts"),
        (2 * HOUR, 1 * HOUR, "ends_at", "end after it starts"),
        (-1 * HOUR, 1 * HOUR, "starts_at", "in the past"),
        (timedelta(minutes=-16), 1 * HOUR, "starts_at", "in the past"),
        (0 * HOUR, 9 * HOUR, "ends_at", "8 hours at most"),
        (0 * HOUR, 8 * HOUR + timedelta(seconds=1), "ends_at", "8 hours at most"),
        (24 * HOUR, 33 * HOUR, "ends_at", "8 hours at most"),
    ],
)
def test_a_timeslot_that_cannot_be(starts, ends, field, words, ask, now):
    fields = refused(ask, starts_at=now + starts, ends_at=now + ends)
    assert list(fields) == [field]
    assert words in fields[field][0]


@pytest.mark.parametrize(
    ("field", "value"), [("priority", 51), ("priority", -1), ("priority", 0), ("pool", "p" * 64)]
)
def test_a_value_out_of_range(field, value, ask):
    assert field in refused(ask, **{field: value})


def test_all_that_is_wrong_is_said_at_once(ask, definition, stranger, now):
    fields = refused(ask, definition=definition, owner=stranger, ends_at=now)
    assert set(fields) == {"definition", "owner", "ends_at"}


@pytest.mark.parametrize(
    ("starts", "ends"), [(timedelta(minutes=-14), HOUR), (0 * HOUR, 8 * HOUR), (100 * HOUR, 101 * HOUR)]
)
def test_a_timeslot_that_can_be(starts, ends, ask, now):
    session = ask(starts_at=now + starts, ends_at=now + ends)
    assert LabletSession.objects.get(pk=session.pk).duration == ends - starts


def test_a_session_starts_pending_with_its_first_step_and_its_kernels(ask, now):
    session = ask()
    session.refresh_from_db()
    assert (session.status, session.status_since, session.attempt) == ("PENDING", now, 1)
    step = session.transitions.get()
    assert (step.from_status, step.to_status, step.actor, step.at) == ("", "PENDING", "otto", now)
    assert list(session.kernels.values_list("node_label", "status")) == [
        ("host", "PENDING"),
        ("r1", "PENDING"),
        ("r2", "PENDING"),
    ]


def test_the_change_log_says_what_was_asked_for(ask, operator):
    session = ask(priority=Priority.HIGH)
    entry = ChangeLog.objects.get(event="session_created")
    assert entry.object_id == str(session.pk)
    assert entry.user_id == operator.pk
    assert entry.message == "campus v1.0 requested for otto"
    assert entry.after["priority"] == 90
    assert entry.after["project"] == "academy / ccna"
    assert entry.after["revision"] == 1


def test_it_waits_in_the_definition_s_pool_unless_another_is_asked_for(ask):
    assert ask().pool == "cml-eu"
    assert ask(pool="cml-us").pool == "cml-us"


def test_it_pins_the_current_revision_and_stays_pinned(ask, active_definition, as_admin, now):
    before = ask()
    revise_definition(
        definition=active_definition,
        requirements={"cpu_cores": Decimal(8)},
        based_on=1,
        reason="measured",
        actor=as_admin,
        now=now,
    )
    after = ask()
    pinned = {each.pk: each.revision.number for each in LabletSession.objects.select_related("revision")}
    assert pinned == {before.pk: 1, after.pk: 2}
    assert before.kernels.get(node_label="r1").cpu_cores == Decimal(2)
    assert after.kernels.get(node_label="r1").cpu_cores == Decimal(4)


def test_what_counts_is_the_definition_as_it_is_now(ask, active_definition, as_admin):
    """The caller's copy may be old: the status and the revision are those of the moment of asking."""
    fresh = LabletDefinition.objects.get(pk=active_definition.pk)
    set_definition_status(definition=fresh, status=DefinitionStatus.DEPRECATED, reason="old", actor=as_admin)
    assert list(refused(ask, definition=active_definition)) == ["definition"]


def test_a_timeslot_that_is_over_cannot_be_asked_for(ask, now):
    slot = {"starts_at": now - timedelta(minutes=14), "ends_at": now - timedelta(minutes=13)}
    assert list(refused(ask, **slot)) == ["ends_at"]


def test_nobody_asks_for_someone_whose_account_is_closed(ask, operator):
    operator.is_active = False
    assert list(refused(ask, owner=operator)) == ["owner"]
