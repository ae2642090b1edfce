"""Controllers cannot see each other's sessions; controllers and people use separate endpoints."""

import pytest

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, LabletSession, SessionTransition
from tests.support.factories import make_controller

INTERNAL = "/api/internal/lablet-sessions/"
SHARED = "/api/lablet-sessions/"


@pytest.fixture
def eu(session_in):
    return session_in(SessionStatus.RUNNING, pool="cml-eu")


@pytest.fixture
def us(session_in):
    return session_in(SessionStatus.RUNNING, pool="cml-us")


def listed_ids(client, path, **filters):
    return {row["id"] for row in client.get(path, filters).json()["results"]}


@pytest.mark.parametrize("path", [INTERNAL, SHARED])
def test_a_controller_lists_the_sessions_of_its_pools_only(path, api, controller, other_controller, eu, us):
    assert listed_ids(api(controller), path) == {str(eu.pk)}
    assert listed_ids(api(other_controller), path) == {str(us.pk)}


@pytest.mark.parametrize("path", [INTERNAL, SHARED])
def test_a_filter_does_not_widen_the_scope(path, api, controller, eu, us):
    client = api(controller)
    assert listed_ids(client, path, pool="cml-us") == set()
    assert listed_ids(client, path, q=us.pk.hex[:8]) == set()
    assert listed_ids(client, path, owner=us.owner.pk) == {str(eu.pk)}


def test_a_controller_of_two_pools_sees_both(api, eu, us):
    both = make_controller("both", "pool:cml-eu", "pool:cml-us")
    assert listed_ids(api(both), INTERNAL) == {str(eu.pk), str(us.pk)}


def test_a_token_with_another_kind_of_scope_is_not_a_controller_s(api, eu, us):
    response = api(make_controller("site", "site:cml-eu")).get(INTERNAL)
    assert (response.status_code, response.json()["code"]) == (403, "permission_denied")


def test_a_session_without_a_pool_is_visible_to_no_controller(api, controller, session_in, eu):
    LabletSession.objects.filter(pk=eu.pk).update(pool="")
    assert listed_ids(api(controller), INTERNAL) == set()


@pytest.mark.parametrize("path", [INTERNAL, SHARED])
def test_a_session_of_another_controller_is_not_found(path, api, controller, other_controller, eu):
    assert api(controller).get(f"{path}{eu.pk}/").status_code == 200
    response = api(other_controller).get(f"{path}{eu.pk}/")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_a_session_of_another_controller_cannot_be_moved(api, other_controller, eu):
    steps = SessionTransition.objects.count()
    response = api(other_controller).post(f"{INTERNAL}{eu.pk}/transitions/", {"to_status": "COLLECTING"})
    assert response.status_code == 404
    eu.refresh_from_db()
    assert (eu.status, SessionTransition.objects.count()) == ("RUNNING", steps)


def test_a_controller_moves_its_own_session_and_is_recorded(api, controller, eu):
    path = f"{INTERNAL}{eu.pk}/transitions/"
    response = api(controller).post(path, {"to_status": "COLLECTING", "reason": "timeslot over"})
    assert (response.status_code, response.json()["status"]) == (200, "COLLECTING")
    step = eu.transitions.get(to_status="COLLECTING")
    assert (step.actor, step.reason) == ("controller controller-eu", "timeslot over")
    entry = ChangeLog.objects.get(reason="timeslot over")
    assert (entry.user_id, entry.token_id) == (None, controller.token.pk)


FOR_PEOPLE_ONLY = [
    ("get", "/api/lablet-definitions/"),
    ("get", "/api/domains/"),
    ("get", "/api/projects/"),
    ("get", "/api/users/"),
    ("get", "/api/tokens/"),
    ("get", "/api/changes/"),
    ("get", "/api/schema"),
    ("post", "/api/lablet-sessions/"),
    ("post", "/api/lablet-definitions/import/"),
    ("post", "/api/domains/"),
    ("post", "/api/projects/"),
    ("post", "/api/tokens/"),
]


@pytest.mark.parametrize(("method", "path"), FOR_PEOPLE_ONLY)
def test_a_controller_may_not_use_endpoints_for_people(method, path, api, controller):
    assert getattr(api(controller), method)(path).status_code == 403


@pytest.mark.parametrize("step", ["cancel", "extend"])
def test_a_controller_may_not_cancel_or_extend(step, api, controller, eu):
    assert api(controller).post(f"{SHARED}{eu.pk}/{step}/", {"reason": "x"}).status_code == 403


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_people_may_not_use_endpoints_for_controllers(role, api, eu, request):
    client = api(request.getfixturevalue(role))
    assert client.get(INTERNAL).status_code == 403
    assert client.get(f"{INTERNAL}{eu.pk}/").status_code == 403
    assert client.post(f"{INTERNAL}{eu.pk}/transitions/", {"to_status": "COLLECTING"}).status_code == 403


def test_people_see_the_sessions_of_all_pools(api, viewer, eu, us):
    assert listed_ids(api(viewer), SHARED) == {str(eu.pk), str(us.pk)}
