"""The key that a worker gets for its boot token gives access to its own slot, not to the rest of the pool."""

from datetime import timedelta
from types import SimpleNamespace
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.db.models import F

from lcm.domain.access import ControllerScope
from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput
from lcm.domain.lifecycle import SessionStatus
from lcm.events.change_feed_reader import FeedChange
from lcm.models import ApiToken
from lcm.selectors.controller_sessions import changes_in_scope
from lcm.services.session_transitions import transition_session
from lcm.services.tokens import rotate_token
from observations.models import Presence, SessionObservation
from observations.selectors.controllers import controller_statuses, heartbeats_by_pool
from observations.selectors.discovery import served_pools
from scheduling.capacity.launcher import boot_token
from scheduling.models import LaunchAttempt, ProcessLease, Reservation, ReservationPart, Slot, SlotState
from scheduling.services.slots import move_slot
from tests.support.factories import TokenHolder, make_controller
from tests.support.observed_labs import on_slot, seen
from tests.support.watch_server import WATCH, request_watch

HOLD = "/api/internal/leases/hold"
pytestmark = pytest.mark.django_db


@pytest.fixture
def fleet(api, session_in, now):
    """Two workers of cml-eu with a running session each, and the boot key of the first."""
    session, other_session = (session_in(SessionStatus.RUNNING) for _ in range(2))
    slots = [on_slot(session, number=1), on_slot(other_session, number=2)]
    for slot in slots:
        Slot.objects.filter(pk=slot.pk).update(endpoint=f"https://{slot.name}", instance_id=slot.name)
    attempt = LaunchAttempt.objects.create(
        slot=slots[0], token="t" * 32, requested_at=now, outcome="launched"
    )
    response = api(None).post("/api/internal/boot", {"slot_id": slots[0].pk, "token": boot_token(attempt)})
    key = TokenHolder(ApiToken.objects.get(launch_attempts=attempt), response.json()["key"])
    return SimpleNamespace(
        session=session,
        other_session=other_session,
        slot=slots[0],
        other_slot=slots[1],
        key=key,
        client=api(key),
    )


LISTS = ["/api/internal/lablet-sessions/", "/api/lablet-sessions/", "/api/internal/slots/", "/api/slots/"]


@pytest.mark.parametrize("path", LISTS)
def test_the_key_lists_its_own_slot_and_the_sessions_on_it(fleet, path):
    found = {row["id"] for row in fleet.client.get(path).json()["results"]}
    assert found == {str((fleet.slot if "slots" in path else fleet.session).pk)}


CALLS = [
    ("get", "/api/internal/lablet-sessions/{session}/", {}, 200),
    ("get", "/api/lablet-sessions/{session}/", {}, 200),
    ("get", "/api/lablet-sessions/{session}/resource-observations", {}, 200),
    ("get", "/api/slots/{slot}/", {}, 200),
    ("post", "/api/internal/slots/{slot}/heartbeat", {"version": "2.10"}, 200),
    ("post", "/api/internal/slots/{slot}/interruption", {"deadline": "2030-01-01T00:00:00Z"}, 200),
    ("post", "/api/internal/lablet-sessions/{session}/resource-observations", None, 200),
    ("post", "/api/internal/lablet-sessions/{session}/transitions", {"to_status": "COLLECTING"}, 200),
    ("post", "/api/internal/lablet-sessions/{session}/failures", {"reason": "no disk"}, 200),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), CALLS)
def test_every_call_works_for_the_slot_of_the_key_and_for_no_other(fleet, now, method, path, body, status):
    body = seen(now) if body is None else body

    def call(session, slot):
        address = path.format(session=session.pk, slot=slot.pk)
        return getattr(fleet.client, method)(address, body, format="json").status_code

    assert call(fleet.other_session, fleet.other_slot) == 404
    assert call(fleet.session, fleet.slot) == status
    fleet.other_session.refresh_from_db()
    fleet.other_slot.refresh_from_db()
    assert (fleet.other_session.status, fleet.other_slot.last_heartbeat) == ("RUNNING", None)
    assert not SessionObservation.objects.filter(session=fleet.other_session).exists()


def test_a_session_spread_over_other_slots_is_not_found(fleet):
    claim = Reservation.objects.get(session=fleet.session)
    amounts = {"cpu_cores": 1, "memory_gb": 1, "storage_gb": 1}
    for slot in (fleet.slot, fleet.other_slot):
        ReservationPart.objects.create(reservation=claim, slot=slot, kernels=["r1"], **amounts)
    assert fleet.client.get(LISTS[0]).json()["results"] == []


def test_the_feed_is_limited_to_the_slot(fleet, now):
    reservations = Reservation.objects.filter(session=fleet.session)
    ids = [fleet.session.pk, fleet.other_session.pk, fleet.slot.pk, fleet.other_slot.pk, uuid4()]
    kinds = ["session", "session", "slot", "slot", "session"]
    changes = [
        FeedChange(n, kind, key, "cml-eu") for n, (kind, key) in enumerate(zip(kinds, ids, strict=True))
    ]

    def visible_ids(scope):
        return [change.id for change in changes_in_scope(changes, scope)]

    assert visible_ids(fleet.key.token.scope) == [fleet.session.pk, fleet.slot.pk]
    reservations.update(phase="RELEASED")
    assert visible_ids(fleet.key.token.scope) == [fleet.session.pk, fleet.slot.pk], "a session left"
    assert visible_ids(ControllerScope(("cml-eu",))) == ids


@pytest.mark.django_db(transaction=True)
def test_the_watch_is_limited_to_the_slot(fleet, now):
    def watch(**params):
        return request_watch(f"{WATCH}?{urlencode(params)}", key=fleet.key.key).json()

    before = watch()["revision"]
    transition_session(session=fleet.other_session, to=SessionStatus.STOPPING, actor=SYSTEM, now=now)
    before_own_change = watch(since=before, wait=0.1)
    assert (before_own_change["changes"], before_own_change["revision"] > before) == ([], True)
    transition_session(session=fleet.session, to=SessionStatus.STOPPING, actor=SYSTEM, now=now)
    found = watch(since=before, wait=5)
    assert {change["id"] for change in found["changes"]} == {str(fleet.session.pk)}


def test_workers_share_a_pool_and_a_controller_of_the_pool_waits(api, fleet, controller, now):
    scopes = ("pool:cml-eu", f"slot:{fleet.other_slot.pk}")
    neighbour = api(make_controller("worker cml-eu-02 x", *scopes))

    def hold(client, holder):
        (row,) = client.post(HOLD, {"holder": holder}).json()
        return row["held"], row["holder"]

    assert hold(fleet.client, "w1") == (True, "w1")
    assert hold(neighbour, "w2") == (True, "w2")
    assert hold(fleet.client, "w1b") == (False, "w1")
    assert hold(api(controller), "eu-1") == (False, "controllers on workers")
    served = served_pools(now)
    assert {each.name: each.state for each in controller_statuses(served, now)} == {
        "w1": "serving",
        "w2": "serving",
        "w1b": "standing by",
        "eu-1": "standing by",
    }
    assert heartbeats_by_pool(served, now)[0].controller == "controllers on workers"


def test_while_a_controller_serves_the_pool_its_workers_stand_by(api, fleet, controller):
    assert api(controller).post(HOLD, {"holder": "eu-1"}).json()[0]["held"]
    (row,) = fleet.client.post(HOLD, {"holder": "w1"}).json()
    assert (row["held"], row["holder"]) == (False, "eu-1")
    api(controller).post("/api/internal/leases/release", {"holder": "eu-1"})
    assert fleet.client.post(HOLD, {"holder": "w1"}).json()[0]["held"]


def test_a_controller_gets_the_pool_after_its_workers_stand_by(api, fleet, controller):
    """Otherwise a worker's key could block the controller of the pool indefinitely."""

    def hold(client, holder):
        return [row["held"] for row in client.post(HOLD, {"holder": holder}).json()]

    assert hold(fleet.client, "w1") == [True]
    assert hold(api(controller), "eu-1") == [False]
    ends_at = ProcessLease.objects.get(name="controller:cml-eu").expires_at
    assert hold(fleet.client, "w1") == [False]
    assert ProcessLease.objects.get(name="controller:cml-eu").expires_at == ends_at, (
        "the workers do not renew it"
    )
    ProcessLease.objects.filter(name="controller:cml-eu").update(
        expires_at=F("expires_at") - timedelta(seconds=31)
    )
    assert hold(fleet.client, "w1") == [False], "the controller of the pool waits for it"
    assert hold(api(controller), "eu-1") == [True]
    api(controller).post("/api/internal/leases/release", {"holder": "eu-1"})
    assert hold(fleet.client, "w1") == [True]


@pytest.mark.parametrize("former", ["controller", "neighbour"])
def test_the_key_never_takes_the_name_of_a_silent_controller(api, fleet, controller, now, former):
    """Otherwise the key could prevent that controller from restarting, or register its scrape address."""
    other_slot = f"slot:{fleet.other_slot.pk}"
    if former == "neighbour":
        controller = make_controller("worker cml-eu-02 x", "pool:cml-eu", other_slot)
    api(controller).post(HOLD, {"holder": "eu-1", "metrics_address": "10.0.0.9:9108"})
    Presence.objects.update(seen_at=now - timedelta(minutes=5))
    response = fleet.client.post(HOLD, {"holder": "eu-1", "metrics_address": "203.0.113.66:80"})
    assert response.status_code == 409
    assert Presence.objects.get().address == "10.0.0.9:9108"


@pytest.mark.parametrize("call", ["hold", "release"])
def test_the_shared_name_cannot_be_taken(api, fleet, controller, call):
    fleet.client.post(HOLD, {"holder": "w1"})
    response = api(controller).post(f"/api/internal/leases/{call}", {"holder": "controllers on workers"})
    assert response.status_code == 400
    (row,) = api(controller).post(HOLD, {"holder": "eu-1"}).json()
    assert (row["held"], row["holder"]) == (False, "controllers on workers")


def test_a_rotated_key_has_the_same_slot_and_expires_with_the_instance(fleet, now, as_admin):
    rotated, _ = rotate_token(token=fleet.key.token, reason="leaked", actor=as_admin, now=now)
    assert rotated.scope == ControllerScope(("cml-eu",), fleet.slot.pk)
    Slot.objects.filter(pk=fleet.slot.pk).update(state=SlotState.TERMINATING, lease_count=0)
    fleet.slot.refresh_from_db()
    assert move_slot(slot=fleet.slot, to=SlotState.EMPTY, now=now)
    rotated.refresh_from_db()
    assert rotated.revoked_at == now


SLOT = f"slot:{uuid4()}"


@pytest.mark.parametrize(
    "scopes", [[SLOT], ["pool:a", "slot:1"], ["pool:a", "pool:b", SLOT], ["pool:a", SLOT, f"slot:{uuid4()}"]]
)
def test_a_token_names_one_slot_of_one_pool(scopes):
    with pytest.raises(InvalidInput):
        make_controller("worker", *scopes)
