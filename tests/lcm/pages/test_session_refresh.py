"""A session's page refreshes as a whole: header, lifecycle, panels and log come from one response."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from scheduling.models import LastVerdict, Slot, SlotState
from tests.support.capacity_setup import make_slot, put_session_on

REFRESH = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def page_of(client, operator):
    """`page_of(session)`: its page; `page_of(session, **REFRESH)`: a refresh."""
    client.force_login(operator)
    return lambda session, query="", **headers: client.get(
        reverse("session_detail", args=[session.pk]) + query, **headers
    ).content.decode()


def text_of(body: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def panels_in(body: str) -> list[str]:
    return re.findall(r'id="(panel-[a-z]+)"', body)


def test_a_refresh_contains_everything_that_changes(page_of, session_in, settings):
    settings.CONFIG["PROMETHEUS_URL"] = "http://prometheus:9090"
    session = session_in(S.RUNNING)
    body = page_of(session, **REFRESH)
    assert body.lstrip().startswith('<div id="session"')
    assert f'hx-get="/sessions/{session.pk}/" hx-trigger="every 5s" hx-swap="outerHTML"' in body
    assert panels_in(body) == ["panel-access", "panel-live", "panel-capacity", "panel-observed"]
    assert all(each in text_of(body) for each in ("Lifecycle", "Nodes", "Planned and observed", "Change log"))
    # Only the live figures have a request of their own, and survive the refresh.
    assert re.findall(r'hx-get="([^"]*)" hx-trigger', body)[1:] == [f"/sessions/{session.pk}/live"]
    assert re.search(r'id="panel-live"[^>]* hx-preserve="true"', body)


def test_states_and_ports_of_nodes_are_only_in_how_to_connect_while_a_session_has_a_slot(page_of, session_in):
    session = session_in(S.RUNNING)
    put_session_on(make_slot(session.reservations.get().pool), session, timezone.now())
    rest = page_of(session).partition('id="panel-access"')[2].partition("</section>")[2]
    assert "Nodes" in rest
    assert "ports-title" not in rest
    assert 'data-label="State"' not in rest
    ended = page_of(session_in(S.TERMINATED))
    assert 'data-label="State"' in ended
    assert "ports-title" in ended


def test_no_part_of_a_refresh_contradicts_the_status(page_of, session_in):
    waiting, started = session_in(S.PENDING), session_in(S.INSTANTIATING)
    assert panels_in(page_of(waiting, **REFRESH))[0] == "panel-why"
    text = text_of(page_of(started, **REFRESH))
    assert "The lab is starting" in text
    assert "Wait reasons" not in text
    assert "waiting for a slot" not in text


def test_the_first_response_of_a_waiting_session_loads_its_wait_reasons_with_the_first_refresh(
    page_of, session_in
):
    session = session_in(S.PENDING)
    body = page_of(session)
    assert 'hx-trigger="load, every 5s"' in body
    assert f'href="/sessions/{session.pk}/wait-reasons"' in body
    assert 'hx-trigger="every 5s"' in page_of(session, **REFRESH)


def test_an_ended_session_is_not_refreshed(page_of, session_in):
    assert "every 5s" not in page_of(session_in(S.TERMINATED))


def test_reasons_by_slot_stay_in_later_refreshes(page_of, session_in):
    session = session_in(S.PENDING)
    body = page_of(session, "?by=slot", **REFRESH)
    assert f'hx-get="/sessions/{session.pk}/?by=slot" hx-trigger="every 5s"' in body


def test_a_new_session_waits_for_the_next_cycle_and_not_for_a_stale_order(page_of, session, settings):
    settings.CONFIG["TICK_INTERVAL"] = 10
    text = text_of(page_of(session, **REFRESH))
    assert "The next scheduling cycle decides (within 10 s)." in text
    assert "new in cml-eu" in text
    assert "order as of" not in text
    LastVerdict.objects.create(reservation=session.reservations.get(), summary="waiting")
    assert "The next scheduling cycle decides" not in text_of(page_of(session, **REFRESH))


def test_a_late_cycle_is_not_promised(page_of, session):
    late = timezone.now() - timedelta(minutes=1)
    LabletSession.objects.filter(pk=session.pk).update(created_at=late)
    session.reservations.update(created_at=late)
    text = text_of(page_of(session, **REFRESH))
    assert "The next scheduling cycle decides" not in text
    assert "not evaluated by a tick yet" in text


def test_a_draining_slot_is_a_banner(page_of, session_in, now):
    session = session_in(S.RUNNING)
    slot = make_slot(session.reservations.get().pool, 4)
    put_session_on(slot, session, now)
    assert "is draining" not in page_of(session)
    Slot.objects.filter(pk=slot.pk).update(state=SlotState.DRAINING)
    text = text_of(page_of(session, **REFRESH))
    assert "cml-eu-04 is draining. The session keeps its slot until it ends." in text
    assert text.index("is draining") < text.index("How to connect")
