"""Requests to observe a session now."""

from datetime import timedelta

import pytest

from lcm.domain.errors import StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, FeedEntry
from observations.models import ObservationRequest, RequestState
from observations.selectors.requests import open_requests
from observations.services.observation_validation import CLOCK_SKEW
from observations.services.requests import request_observation
from tests.support.observed_labs import post, seen

SECOND = timedelta(seconds=1)


def send_request(session, actor, now):
    return request_observation(session=session, actor=actor, now=now)


def test_a_request_is_open_until_an_observation_arrives(running, as_operator, now):
    made = send_request(running, as_operator, now)
    assert (made.state_at(now), made.actor) == (RequestState.OPEN, "otto")
    assert open_requests([running.pk]) == {running.pk: now}
    post(running, seen(now + timedelta(seconds=5)), now + timedelta(seconds=6))
    made.refresh_from_db()
    assert (made.state, made.completed_at) == (RequestState.COMPLETED, now + timedelta(seconds=6))
    assert open_requests([running.pk]) == {}


def test_an_earlier_observation_does_not_complete_a_request(running, as_operator, now):
    made = send_request(running, as_operator, now)
    post(running, seen(now - timedelta(minutes=30)), now + timedelta(seconds=1))
    made.refresh_from_db()
    assert (made.state, open_requests([running.pk])) == (RequestState.OPEN, {running.pk: now})
    post(running, seen(now + timedelta(seconds=2)), now + timedelta(seconds=3))
    made.refresh_from_db()
    assert made.state == RequestState.COMPLETED


@pytest.mark.parametrize(("behind", "state"), [(CLOCK_SKEW, "completed"), (CLOCK_SKEW + SECOND, "open")])
def test_requests_tolerate_a_slightly_slow_controller_clock(behind, state, running, as_operator, now):
    made = send_request(running, as_operator, now)
    post(running, seen(now - behind), now + SECOND)
    made.refresh_from_db()
    assert made.state == state


def test_a_second_request_returns_the_open_one(running, as_operator, as_admin, now):
    first, second = (
        send_request(running, as_operator, now),
        send_request(running, as_admin, now + timedelta(seconds=30)),
    )
    assert (first.pk, ObservationRequest.objects.count()) == (second.pk, 1)


def test_a_timed_out_request_can_be_repeated(running, as_operator, now):
    first = send_request(running, as_operator, now)
    later = now + timedelta(seconds=120)
    assert first.state_at(later) == RequestState.TIMED_OUT
    second = send_request(running, as_operator, later)
    first.refresh_from_db()
    assert (second.pk != first.pk, first.state) == (True, RequestState.TIMED_OUT)


def test_controllers_do_not_get_timed_out_requests(running, as_operator, now, time_machine):
    made = send_request(running, as_operator, now)
    time_machine.move_to(made.expires_at - SECOND, tick=False)
    assert open_requests([running.pk]) == {running.pk: now}
    time_machine.move_to(made.expires_at, tick=False)
    assert open_requests([running.pk]) == {}


def test_a_request_notifies_controllers_and_the_change_log(running, as_operator, now):
    FeedEntry.objects.all().delete()
    send_request(running, as_operator, now)
    assert [entry.object_id for entry in FeedEntry.objects.all()] == [running.pk]
    assert ChangeLog.objects.filter(event="observation.requested", actor="otto").exists()


@pytest.mark.parametrize("status", sorted(set(SessionStatus) - {"RUNNING"}))
def test_only_running_sessions_can_be_observed(status, session_in, as_operator, now):
    with pytest.raises(StateConflict, match="only a running session"):
        send_request(session_in(status), as_operator, now)
    assert not ObservationRequest.objects.exists()
