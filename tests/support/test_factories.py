from datetime import timedelta

import pytest

from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import DefinitionStatus
from tests.support.factories import WAY_TO


def test_people_have_their_roles(viewer, operator, admin, stranger):
    assert [person.role for person in (stranger, viewer, operator, admin)] == list(Role)


def test_a_session_is_pending_with_a_timeslot_of_two_hours(session):
    assert session.status == SessionStatus.PENDING
    assert session.duration == timedelta(hours=2)
    assert session.pool == "cml-eu"


def test_one_definition_is_a_draft_and_one_is_active(definition, active_definition):
    assert definition.status == DefinitionStatus.DRAFT
    assert active_definition.status == DefinitionStatus.ACTIVE


@pytest.mark.parametrize("status", SessionStatus)
def test_a_session_can_be_created_in_every_status(status, session_in):
    session = session_in(status)
    session.refresh_from_db()
    assert session.status == status
    assert session.transitions.count() == len(WAY_TO[status]) + 1
