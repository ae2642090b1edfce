"""The list of reservations, and the capacity panel of a session."""

from datetime import timedelta

import pytest

from scheduling.models import Phase, Reservation
from tests.support.capacity_setup import make_slot, pool_named, put_on, put_session_on, reserve

HTMX = {"HX-Request": "true"}


def listed_names(client, query):
    return {
        str(row.session_id or row.holder)
        for row in client.get(f"/reservations/?{query}").context["rows"].rows
    }


def test_reservations_are_listed_and_filtered(login_as, viewer, pool, session, now, page_text):
    held, waiting = reserve(pool, now, "build-1"), reserve(pool_named("cml-us"), now, "build-2")
    slot = make_slot(pool, 3)
    put_on(slot, held, now)
    client, session_id = login_as(viewer), str(session.pk)
    assert listed_names(client, "") == {"build-1", "build-2", session_id}
    assert listed_names(client, "pool=cml-us") == {"build-2"}
    assert listed_names(client, "phase=READY") == {"build-1"}
    assert listed_names(client, f"slot={slot.pk}") == {"build-1"}
    assert listed_names(client, f"session={session_id}") == {session_id}
    assert listed_names(client, f"q={session.pk.hex[:8]}") == {session_id}
    assert listed_names(client, f"q={waiting.pk}") == {"build-2"}
    assert listed_names(client, "q=BUILD") == {"build-1", "build-2"}
    text = page_text(client.get("/reservations/"))
    assert "2 waiting" in text
    assert "cml-eu-03" in text


def test_ended_reservations_are_distinguished_from_active_ones(login_as, viewer, pool, now):
    reserve(pool, now, "build-1")
    Reservation.objects.filter(pk=reserve(pool, now, "build-2").pk).update(
        phase=Phase.EXPIRED, released_at=now
    )
    assert listed_names(login_as(viewer), "active=true") == {"build-1"}
    assert listed_names(login_as(viewer), "active=false") == {"build-2"}


def test_a_reservation_without_a_session_is_cancelled_with_a_reason(login_as, operator, pool, now, page_text):
    reservation = reserve(pool, now)
    client = login_as(operator)
    address = f"/reservations/{reservation.pk}/cancel"
    assert address in client.get("/reservations/").content.decode()
    assert "build-7 loses its reserved capacity in cml-eu." in page_text(client.get(address))
    assert client.post(address, {"reason": "forgotten"}).status_code == 302
    reservation.refresh_from_db()
    assert (reservation.phase, reservation.reason) == (Phase.CANCELLED, "forgotten")
    again = client.post(address, {"reason": "forgotten"})
    assert again.status_code == 422
    assert "is cancelled already." in page_text(again)


def test_a_sessions_reservation_is_cancelled_with_the_session(login_as, operator, session, page_text):
    reservation = session.reservations.get()
    client = login_as(operator)
    address = f"/reservations/{reservation.pk}/cancel"
    assert address not in client.get("/reservations/").content.decode()
    page = client.post(address, {"reason": "x"})
    assert page.status_code == 422
    assert "belongs to a session: cancel the session instead." in page_text(page)


def test_a_session_s_page_contains_the_panel(login_as, viewer, session, page_text):
    page = login_as(viewer).get(f"/sessions/{session.pk}/")
    assert f'/reservations/{session.reservations.get().pk}/"' in page.content.decode()
    assert "Pending none, in cml-eu" in page_text(page)


@pytest.mark.parametrize("headers", [HTMX, {}])
def test_the_panel_shows_slot_and_reservation(login_as, viewer, pool, session, now, page_text, headers):
    slot = make_slot(pool, 4)
    put_session_on(slot, session, now - timedelta(hours=2), 2000)
    page = login_as(viewer).get(f"/sessions/{session.pk}/capacity", headers=headers)
    text = page_text(page)
    assert "Ready cml-eu-04 2 h ago" in text
    assert "2000" not in text, "its ports are in the panel that compares them"
    assert ("<html" in page.content.decode()) is (not headers)


def test_the_panel_of_a_waiting_session_names_its_pool(login_as, viewer, session, page_text):
    text = page_text(login_as(viewer).get(f"/sessions/{session.pk}/capacity", headers=HTMX))
    assert "Pending none, in cml-eu" in text


def test_a_session_without_a_reservation_has_an_empty_state(login_as, viewer, session, page_text):
    Reservation.objects.all().delete()
    text = page_text(login_as(viewer).get(f"/sessions/{session.pk}/capacity"))
    assert "This session has no reservation." in text
