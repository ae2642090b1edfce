"""A slot's page, its actions, and the list of slots."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, LabletSession
from scheduling.models import LaunchAttempt, Phase, PortAllocation, Reservation, Slot, SlotState
from tests.support.capacity_setup import make_slot, pool_named, put_on, put_session_on, reserve

HTMX = {"HX-Request": "true"}
S = SlotState


def slot_url(slot, action=""):
    return reverse(f"slot_{action or 'detail'}", args=[slot.pk])


@pytest.fixture
def slot(pool):
    return make_slot(pool, 7, endpoint="https://worker-7", version="2.9.1", offering="m5.metal")


@pytest.mark.parametrize(
    ("state", "expected_text"),
    [
        (S.EMPTY, "Empty Empty for"),
        (S.LAUNCHING, "Launching Launching for"),
        (S.BOOTING, "Booting Booting for"),
        (S.BINDING, "Binding Binding for"),
        (S.READY, "Ready Ready for 0 s. 0 of 10 leases in use."),
        (S.DRAINING, "Draining Draining for 0 s. It has no lease and terminates soon."),
        (S.TERMINATING, "Terminating Terminating for"),
        (S.ERROR, "Error In error for"),
    ],
)
def test_each_state_has_its_description(login_as, viewer, pool, page_text, state, expected_text):
    assert expected_text in page_text(login_as(viewer).get(slot_url(make_slot(pool, 1, state))))


def test_the_number_of_leases_in_use_is_shown(login_as, viewer, slot, now, page_text):
    put_on(slot, reserve(slot.pool, now), now)
    assert "1 of 10 leases in use." in page_text(login_as(viewer).get(slot_url(slot)))


def test_the_page_shows_the_worker_its_sessions_and_its_ports(
    login_as, viewer, slot, session, now, page_text
):
    put_session_on(slot, session, now, 2000, 2001, 2003)
    put_on(slot, reserve(slot.pool, now), now)
    PortAllocation.objects.create(slot=slot, port=2500, name="r9_vnc", leaked=True)
    LaunchAttempt.objects.create(
        slot=slot, token="t", requested_at=now, outcome="refused", category="capacity", error="none left"
    )
    text = page_text(login_as(viewer).get(slot_url(slot)))
    assert "Instance i-cml-eu-7 Endpoint https://worker-7 Offering m5.metal Version 2.9.1" in text
    assert f"{session.short_id} campus Pending otto 4 cores 3.5 GB 2000–2001, 2003" in text
    assert "build-7 reservation" in text
    assert "Allocated 3 Leaked 1 Free 5,996" in text
    assert "2500 r9_vnc leaked, reserved until observed free" in text
    assert "Refused capacity none none left" in text
    assert "CPU 6 / 16 cores Memory 7.5 / 64 GB Storage 7 / 500 GB Ports 4 / 6,000 " in text


def test_reported_capacity_is_shown_with_the_configured_capacity(login_as, viewer, slot, page_text):
    reported = {"cpu_cores": "96", "memory_gb": "384", "storage_gb": "4000"}
    Slot.objects.filter(pk=slot.pk).update(reported_capacity=reported)
    assert (
        "Reported capacity 96 cores, 384 GB memory, 4,000 GB storage "
        "Placement uses the pool's settings: 16 cores, 64 GB, 500 GB"
    ) in page_text(login_as(viewer).get(slot_url(slot)))


@pytest.mark.parametrize(
    ("labels", "expected_text"),
    [
        ({}, "Labels none"),
        ({"rack": "b"}, "Labels rack=b"),
        (["a"], "Labels ['a'] invalid labels, ignored"),
    ],
)
def test_labels_are_shown_and_invalid_labels_are_marked(
    login_as, viewer, slot, page_text, labels, expected_text
):
    Slot.objects.filter(pk=slot.pk).update(labels=labels)
    assert expected_text in page_text(login_as(viewer).get(slot_url(slot)))


def test_deadlines_are_counted_down(login_as, viewer, pool, now, page_text):
    slot = make_slot(
        pool,
        1,
        S.DRAINING,
        state_deadline=now + timedelta(seconds=400),
        interruption_deadline=now + timedelta(seconds=110),
    )
    text = page_text(login_as(viewer).get(slot_url(slot)))
    assert "Spot interruption notice. Terminates in 01:4" in text
    assert (
        "Ready sessions stop now. LCM observes and ends running sessions 45 s before the worker is gone. "
        "LCM requests preemptible sessions again"
    ) in text
    assert "Deadline in 6 min" in text


def test_a_silent_draining_worker_says_why_its_drain_cannot_be_cancelled(
    login_as, operator, pool, now, page_text
):
    silence = {"last_heartbeat": now - timedelta(minutes=7), "heartbeat_lost_at": now - timedelta(minutes=2)}
    slot = make_slot(pool, 1, S.DRAINING, lease_count=1, idle_since=now, **silence)
    text = page_text(login_as(operator).get(slot_url(slot)))
    assert "No heartbeat for 7 min" in text
    assert "The drain cannot be cancelled until a heartbeat of the worker arrives." in text
    assert "Cancel drain…" not in text


def test_an_overdue_slot_is_marked(login_as, viewer, pool, now, page_text):
    slot = make_slot(pool, 1, S.BOOTING, state_deadline=now - timedelta(seconds=90))
    assert "Overdue by 1 min 3" in page_text(login_as(viewer).get(slot_url(slot)))


@pytest.mark.parametrize(
    ("state", "fields", "offered"),
    [
        (S.READY, {}, {"cordon", "drain", "terminate"}),
        (S.READY, {"cordoned": True}, {"uncordon", "drain", "terminate"}),
        (S.READY, {"lease_count": 2}, {"cordon", "drain"}),
        (S.BOOTING, {}, {"cordon", "drain", "terminate"}),
        (S.DRAINING, {}, {"cordon", "terminate"}),
        (S.TERMINATING, {}, set()),
        (S.ERROR, {}, {"retry"}),
        (S.EMPTY, {}, set()),
    ],
)
def test_only_possible_actions_are_offered(login_as, operator, pool, state, fields, offered):
    slot = make_slot(pool, 1, state, **fields)
    body = login_as(operator).get(slot_url(slot)).content.decode()
    actions = ("cordon", "uncordon", "drain", "retry", "terminate")
    assert {action for action in actions if f'href="{slot_url(slot, action)}"' in body} == offered


def test_a_viewer_sees_no_actions(login_as, viewer, slot):
    assert 'hx-target="#dialog"' not in login_as(viewer).get(slot_url(slot)).content.decode()


@pytest.mark.parametrize(
    ("action", "old", "fields", "new", "expected_text"),
    [
        ("cordon", S.READY, {}, {"cordoned": True}, "cml-eu-01 is cordoned."),
        ("uncordon", S.READY, {"cordoned": True}, {"cordoned": False}, "cml-eu-01 is uncordoned."),
        ("drain", S.READY, {}, {"state": S.DRAINING}, "cml-eu-01 is draining."),
        ("retry", S.ERROR, {}, {"state": S.EMPTY}, "cml-eu-01 is available again."),
        ("terminate", S.READY, {}, {"state": S.TERMINATING}, "cml-eu-01 is terminating."),
    ],
)
def test_a_dialog_performs_its_action_and_records_the_reason(
    login_as, operator, pool, page_text, action, old, fields, new, expected_text
):
    slot = make_slot(pool, 1, old, **fields)
    client = login_as(operator)
    dialog = client.get(slot_url(slot, action), headers=HTMX)
    assert dialog.templates[0].name == "form.html#dialog" or "<html" not in dialog.content.decode()
    assert f"{action.capitalize()} cml-eu-01?" in page_text(dialog)
    assert client.post(slot_url(slot, action), {"reason": "bad fan"}).status_code == 302
    slot.refresh_from_db()
    assert {name: getattr(slot, name) for name in new} == new
    assert expected_text in page_text(client.get(slot_url(slot)))
    entry = ChangeLog.objects.filter(object_id=str(slot.pk)).latest("id")
    assert (entry.actor, entry.reason) == ("otto", "bad fan")


@pytest.mark.parametrize(
    ("action", "old", "fields", "expected_text"),
    [
        ("cordon", S.READY, {"cordoned": True}, "cml-eu-01 is ready or cordoned already."),
        ("drain", S.TERMINATING, {}, "cml-eu-01 is terminating and cannot drain."),
        ("retry", S.READY, {}, "cml-eu-01 is ready; only a slot in error can be retried."),
        ("terminate", S.READY, {"lease_count": 2}, "cml-eu-01 has 2 leases: drain it"),
        ("terminate", S.EMPTY, {}, "cml-eu-01 is empty and cannot be terminated."),
    ],
)
def test_a_dialog_rejects_an_impossible_action_with_the_reason(
    login_as, operator, pool, page_text, action, old, fields, expected_text
):
    slot = make_slot(pool, 1, old, **fields)
    page = login_as(operator).post(slot_url(slot, action), {"reason": "bad fan"}, headers=HTMX)
    assert page.status_code == 422
    assert expected_text in page_text(page)
    assert Slot.objects.get(pk=slot.pk).state == old


NO_SESSION = {
    "cordon": "The slot gets no new sessions and is not drained when idle. No sessions on this slot.",
    "drain": "The slot gets no new sessions. No sessions on this slot. The worker terminates soon.",
    "terminate": "No sessions on this slot. The worker terminates now.",
}
ONE_SESSION = {
    "cordon": "1 session on this slot, until {end}.",
    "drain": "1 session on this slot, until {end}. The worker terminates after that.",
    "terminate": "1 session on this slot, until {end}. Drain the slot instead.",
}
TWO_RESERVATIONS = {
    "cordon": "2 reservations hold this slot; the last ends at {end}.",
    "drain": "2 reservations hold this slot; the last ends at {end}. The worker terminates after that.",
    "terminate": "2 reservations hold this slot; the last ends at {end}. Drain the slot",
}


@pytest.mark.parametrize("action", ["cordon", "drain", "terminate"])
def test_a_dialog_shows_the_sessions_on_the_slot(login_as, operator, slot, session, now, page_text, action):
    client = login_as(operator)
    assert NO_SESSION[action] in page_text(client.get(slot_url(slot, action), headers=HTMX))
    put_session_on(slot, session, now)
    ends_at = timezone.localtime().replace(hour=23, minute=58)
    type(session).objects.filter(pk=session.pk).update(
        starts_at=ends_at - timedelta(hours=1), ends_at=ends_at
    )
    assert ONE_SESSION[action].format(end="23:58 UTC") in page_text(
        client.get(slot_url(slot, action), headers=HTMX)
    )
    later = ends_at + timedelta(days=1)
    other = reserve(slot.pool, now)
    put_on(slot, other, now)
    type(other).objects.filter(pk=other.pk).update(expires_at=later)
    expected_text = TWO_RESERVATIONS[action].format(end=f"{later:%d %b} 23:58 UTC")
    assert expected_text in page_text(client.get(slot_url(slot, action), headers=HTMX))


def test_empty_labels_are_shown_as_empty_rows(login_as, operator, slot, page_text):
    page = login_as(operator).get(slot_url(slot, "labels"))
    assert 'name="labels-0-key" value=""' in page.content.decode()
    assert "Running sessions stay." in page_text(page)


def test_an_action_without_a_reason_is_rejected(login_as, operator, slot, page_text):
    page = login_as(operator).post(slot_url(slot, "drain"), {"reason": " "})
    assert page.status_code == 422
    assert "This field is required." in page_text(page)
    assert Slot.objects.get(pk=slot.pk).state == S.READY


def test_with_htmx_the_dialog_redirects_to_the_slot(login_as, operator, slot):
    page = login_as(operator).post(slot_url(slot, "drain"), {"reason": "bad fan"}, headers=HTMX)
    assert page.headers["HX-Redirect"] == slot_url(slot)


def slot_names(client, query):
    return [row.name for row in client.get(f"/slots/?{query}").context["rows"].rows]


def test_slots_are_filtered_and_searched(login_as, viewer, pool, now):
    make_slot(pool, 1, offering="m5.metal")
    make_slot(pool, 2, S.ERROR)
    make_slot(pool, 12, cordoned=True, interruption_deadline=now)
    make_slot(pool_named("cml-us"), 1)
    client = login_as(viewer)
    assert slot_names(client, "pool=cml-us") == ["cml-us-01"]
    assert slot_names(client, "state=ERROR") == ["cml-eu-02"]
    assert slot_names(client, "cordoned=true") == ["cml-eu-12"]
    assert slot_names(client, "interrupted=true") == ["cml-eu-12"]
    assert slot_names(client, "q=cml-eu-12") == ["cml-eu-12"]
    assert slot_names(client, "q=m5") == ["cml-eu-01"]
    assert slot_names(client, "pool=cml-eu&sort=number") == ["cml-eu-01", "cml-eu-02", "cml-eu-12"]


def test_the_list_of_slots_starts_with_counts(login_as, viewer, pool, now, page_text):
    client = login_as(viewer)
    assert "slots ready" not in page_text(client.get("/slots/"))
    first = make_slot(pool, 1)
    make_slot(pool, 2)
    put_on(first, reserve(pool, now), now)
    page = client.get("/slots/")
    assert "0 slots in error. 2 slots ready · 1 of 20 leases in use." in page_text(page)
    assert page.context["crumbs"] == [("Capacity", "/pools/"), ("Slots", "")]
    make_slot(pool, 3, S.ERROR)
    assert "1 slot in error. 2 slots ready" in page_text(client.get("/slots/"))


def test_the_filter_reports_an_unknown_pool(login_as, viewer, pool, page_text):
    page = login_as(viewer).get("/slots/?pool=nowhere")
    assert page.status_code == 200
    assert "Pool: Select a valid choice. nowhere is not one of the available choices." in page_text(page)


def test_many_slots_are_drained_at_once(login_as, operator, pool, page_text):
    ready, failed = make_slot(pool, 1), make_slot(pool, 2, S.ERROR)
    client = login_as(operator)
    chosen = {"pk": [str(ready.pk), str(failed.pk)]}
    dialog = page_text(client.post("/slots/drain", chosen))
    assert "Drain 1 slot?" in dialog
    assert (
        "The slots have no leases. Running sessions continue to their end. Then the workers terminate."
        in dialog
    )
    page = client.post("/slots/drain", {**chosen, "reason": "new image"}, follow=True)
    assert "1 slot set to drain." in page_text(page)
    ready.refresh_from_db()
    assert ready.state == S.DRAINING


@pytest.mark.parametrize("action", ["cordon", "drain"])
def test_the_leases_of_many_slots_are_counted(login_as, operator, pool, page_text, action):
    slots = [make_slot(pool, number, lease_count=number) for number in (1, 2)]
    dialog = login_as(operator).post(f"/slots/{action}", {"pk": [str(each.pk) for each in slots]})
    assert "3 leases in use on these slots." in page_text(dialog)


@pytest.mark.parametrize(("action", "cordoned"), [("cordon", False), ("uncordon", True)])
def test_many_slots_are_cordoned_at_once(login_as, operator, pool, action, cordoned):
    slots = [make_slot(pool, number, cordoned=cordoned) for number in (1, 2)]
    login_as(operator).post(f"/slots/{action}", {"pk": [str(each.pk) for each in slots], "reason": "x"})
    assert Slot.objects.filter(cordoned=not cordoned).count() == 2


def test_the_list_of_sessions_shows_the_slot_of_each(
    login_as, viewer, slot, session, session_in, now, page_text
):
    put_session_on(slot, session, now, 2000)
    session_in(session.status)
    text = page_text(login_as(viewer).get(reverse("session_list")))
    assert re.search(rf"{session.short_id} [^…]*? {slot.name} ", text)
    assert text.count(slot.name) == 1


def test_the_list_of_sessions_shows_the_last_slot_of_ended_sessions(login_as, viewer, pool, session, now):
    first, last = make_slot(pool, 1), make_slot(pool, 2)
    put_session_on(first, session, now)
    reservation = session.reservations.get()
    values = {"session": session, "pool": pool, "slot": last, "attempt": 2, "phase": Phase.RELEASED}
    sizes = {"cpu_cores": 1, "memory_gb": 1, "storage_gb": 1, "created_at": now, "released_at": now}
    Reservation.objects.filter(pk=reservation.pk).update(phase=Phase.RELEASED, released_at=now)
    Reservation.objects.create(**values, **sizes)
    waiting_page = login_as(viewer).get(reverse("session_list")).content.decode()
    assert first.name not in waiting_page
    assert last.name not in waiting_page
    LabletSession.objects.update(status=SessionStatus.TERMINATED)
    page = login_as(viewer).get(reverse("session_list")).content.decode()
    assert f'<span class="nowrap muted"><a class="quiet-link" href="{slot_url(last)}">cml-eu-02</a>' in page
    assert first.name not in page
