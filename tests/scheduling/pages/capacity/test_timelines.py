"""Timeline pages: jump to a time, kinds, addresses of entries, export, and the panel of a slot."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from lcm.domain.actors import SYSTEM, Actor
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog
from lcm.services.changelog import log_change
from lcm.services.session_transitions import transition_session
from scheduling.models import SlotState
from scheduling.services.slots import cordon_slot
from tests.support.capacity_setup import make_slot, put_session_on


@pytest.fixture
def now():
    return timezone.now()


@pytest.fixture
def slot(pool, session, operator, now):
    """A slot with one session, and with entries of yesterday at 15:00 and of an hour ago."""
    slot = make_slot(pool, 1, SlotState.READY)
    put_session_on(slot, session, now - timedelta(hours=3), 2000)
    transition_session(
        session=session, to=SessionStatus.SCHEDULED, actor=SYSTEM, now=now - timedelta(hours=2)
    )
    yesterday = (timezone.localtime(now) - timedelta(days=1)).replace(hour=15, minute=0)
    for event in ("lost", "back"):
        message = f"{slot}: heartbeat {event} yesterday"
        log_change(slot, actor=SYSTEM, event=f"slot.heartbeat_{event}", message=message, now=yesterday)
    person = Actor.person(operator)
    cordon_slot(slot=slot, cordoned=True, reason="A disk", actor=person, now=now - timedelta(hours=1))
    return slot


def address(slot, **query):
    return reverse("slot_timeline", args=[slot.pk], query=query)


def test_a_slot_shows_its_own_entries_and_those_of_its_sessions(login_as, viewer, slot, session, page_text):
    text = page_text(login_as(viewer).get(address(slot)))
    assert "Timeline of cml-eu-01" in text
    assert "Pending → Scheduled" in text
    assert f"Session {session.short_id}".lower() in text.lower()
    assert "cml-eu-01 cordoned" in text
    assert "A disk" in text


def test_a_jump_shows_the_time_around_a_moment(login_as, viewer, slot, page_text):
    text = page_text(login_as(viewer).get(address(slot, when="yesterday 15:00")))
    assert "heartbeat lost yesterday" in text
    assert "heartbeat back yesterday" in text
    assert "cordoned" not in text


def test_a_time_that_is_not_understood_keeps_the_text_and_shows_the_default(
    login_as, viewer, slot, page_text
):
    page = login_as(viewer).get(address(slot, when="soon"))
    assert 'value="soon"' in page.content.decode()
    assert 'aria-invalid="true"' in page.content.decode()
    assert "“soon” is not a time." in page_text(page)
    assert "cordoned" in page_text(page)


@pytest.mark.parametrize("since", ["1969-01-01T00:00:00Z", "0001-01-01T00:00:00Z"])
@pytest.mark.parametrize("name", ["slot", "session"])
def test_a_time_out_of_range_is_refused(login_as, viewer, slot, session, page_text, name, since):
    key = slot.pk if name == "slot" else session.pk
    page = login_as(viewer).get(reverse(f"{name}_timeline", args=[key], query={"since": since}))
    assert "This time is out of range." in page_text(page)


def test_a_long_time_is_cut_to_a_month(login_as, viewer, slot, page_text):
    text = page_text(login_as(viewer).get(address(slot, since="2020-01-01T00:00:00Z")))
    assert "A timeline shows 31 days at most." in text


@pytest.mark.parametrize(("kind", "shown"), [
    ("sessions", "Pending → Scheduled"),
    ("states", "cml-eu-01 cordoned"),
    ("heartbeats", "heartbeat lost"),
    ("people", "cml-eu-01 cordoned"),
    ("drift", "No entry matches"),
])  # fmt: skip
def test_kinds_narrow_the_entries(login_as, viewer, slot, page_text, kind, shown):
    text = page_text(login_as(viewer).get(address(slot, kind=kind, when="7d")))
    entries = ["Pending → Scheduled", "cml-eu-01 cordoned", "heartbeat lost", "No entry matches"]
    assert [entry for entry in entries if entry in text] == [shown]


def test_the_address_of_an_entry_leads_to_it(login_as, viewer, slot):
    client = login_as(viewer)
    entry = ChangeLog.objects.get(event="slot.heartbeat_lost")
    body = client.get(address(slot, when="yesterday 15:00")).content.decode()
    link = body.split(f'id="entry-{entry.pk}" href="')[1].split('"')[0]
    query, _, anchor = link.partition("#")
    assert f'id="{anchor}"' in client.get(reverse("slot_timeline", args=[slot.pk]) + query).content.decode()


def test_a_filter_keeps_the_time_and_a_jump_keeps_the_filter(login_as, viewer, slot):
    body = login_as(viewer).get(address(slot, when="yesterday 15:00", kind="heartbeats")).content.decode()
    jump, filters = body.split('class="time-jump"')[1].split("</form>")[0], body.split('id="filters"')[1]
    assert '<input type="hidden" name="kind" value="heartbeats">' in jump
    assert '<input type="hidden" name="when" value="yesterday 15:00">' in filters
    assert "?kind=heartbeats&amp;when=7d" in body


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_the_entries_of_the_time_shown_are_exported(login_as, viewer, slot, file_format):
    page = login_as(viewer).get(address(slot, when="yesterday 15:00", format=file_format))
    text = page.getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(text))) if file_format == "csv" else json.loads(text)
    key = "Event" if file_format == "csv" else "event"
    assert [row[key] for row in rows] == ["slot.heartbeat_back", "slot.heartbeat_lost"]
    assert "timeline-cml-eu-01" in page["Content-Disposition"]


def test_the_page_of_a_slot_shows_its_newest_entries_with_its_sessions(
    login_as, viewer, slot, session, page_text
):
    page = login_as(viewer).get(reverse("slot_detail", args=[slot.pk]))
    assert f"Pending → Scheduled · session {session.short_id}" in page_text(page).replace("\xa0", " ")
    assert f'href="{address(slot)}"' in page.content.decode()


@pytest.mark.parametrize("name", ["pool", "session"])
def test_pools_and_sessions_have_a_timeline(login_as, viewer, slot, session, page_text, name):
    key = slot.pool_id if name == "pool" else session.pk
    client = login_as(viewer)
    link = reverse(f"{name}_timeline", args=[key])
    assert f'href="{link}"' in client.get(reverse(f"{name}_detail", args=[key])).content.decode()
    text = page_text(client.get(f"{link}?when=24h"))
    assert "Pending → Scheduled" in text
    assert "cml-eu-01 cordoned" in text


@pytest.mark.parametrize("query", [
    {"since": "1970-01-02T00:00:00Z", "until": "8999-12-31T00:00:00Z"},
    {"until": "0001-01-01T00:00:00Z"},
    {"since": "9999-12-31T00:00:00Z"},
    {"since": "2026-03-02T00:00:00Z", "until": "2026-03-01T00:00:00Z"},
])  # fmt: skip
def test_a_time_outside_of_the_calendar_is_a_problem_and_no_error(login_as, viewer, session, query):
    url = reverse("session_timeline", args=[session.pk], query=query)
    response = login_as(viewer).get(url)
    assert response.status_code == 200
    assert response.context["page"].jump.problem


def test_all_timelines_have_the_same_columns_and_views(login_as, viewer, slot, session):
    client = login_as(viewer)
    here = address(slot)
    layout = client.get(here).context["page"].export_name
    client.post(
        reverse("list_layout", args=[layout]), {"next": here, "columns": ["time"], "density": "compact"}
    )
    shown = client.get(reverse("session_timeline", args=[session.pk])).context["layout"]
    assert shown.density == "compact"
