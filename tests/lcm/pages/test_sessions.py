"""The session list, a session's page, requesting a session and extending it."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from lcm.selectors.sessions import session_timeline
from lcm.templatetags.lcm import clock, step_duration, timeslot
from scheduling.models import Phase, Reservation, Slot, SlotState

S = SessionStatus
NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def page_text(client, operator):
    """`page_text(name, …)`: the text of a page for the operator, without markup."""
    client.force_login(operator)

    def read(name: str, *args: object, **query: str) -> str:
        return without_markup(client.get(reverse(name, args=args), query).content.decode())

    return read


def without_markup(body: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body))).strip()


def with_timeslot(session, starts_at, ends_at) -> LabletSession:
    LabletSession.objects.filter(pk=session.pk).update(starts_at=starts_at, ends_at=ends_at)
    session.refresh_from_db()
    return session


@pytest.mark.parametrize(
    ("starts_at", "ends_at", "text"),
    [
        (NOON, NOON + HOUR, "12:00 to 13:00 UTC"),
        (NOON - 24 * HOUR, NOON - 23 * HOUR, "03 May 12:00 to 13:00 UTC"),
        (NOON, NOON + 24 * HOUR, "12:00 to 05 May 12:00 UTC"),
        (
            datetime(2035, 1, 2, 8, tzinfo=UTC),
            datetime(2035, 1, 2, 9, tzinfo=UTC),
            "02 Jan 2035 08:00 to 09:00 UTC",
        ),
    ],
    ids=["today", "yesterday", "over a day", "another year"],
)
def test_a_timeslot_shows_a_shared_date_once(starts_at, ends_at, text, time_machine):
    time_machine.move_to(NOON, tick=False)
    assert without_markup(timeslot(starts_at, ends_at)) == text


def test_a_clock_can_show_seconds(time_machine):
    time_machine.move_to(NOON, tick=False)
    moment = NOON + timedelta(seconds=7)
    found = without_markup(clock(moment)), without_markup(clock(moment, "seconds"))
    assert found == ("12:00 UTC", "12:00:07 UTC")


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (0, "under 1 s"), (0.9, "under 1 s"), (1, "1 s"), (75, "1 min 15 s")]
)
def test_a_short_duration_is_not_shown_as_zero(seconds, text):
    assert step_duration(None if seconds is None else timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("status", "starts", "ends", "text"),
    [
        (S.PENDING, 2, 3, "starts in 2 h"),
        (S.RUNNING, -1, 3, "ends in 3 h"),
        (S.RUNNING, -3, -1, "was due to end 1 h ago"),
        (S.TERMINATED, -3, 5, "ended just now"),
    ],
)
def test_the_list_shows_when_a_session_starts_or_ends(
    status, starts, ends, text, page_text, session_in, time_machine, now
):
    time_machine.move_to(now, tick=False)
    with_timeslot(session_in(status), now + starts * HOUR, now + ends * HOUR)
    assert f" {text} " in page_text("session_list")


@pytest.mark.parametrize(
    ("query", "chip", "shown"), [("true", "No", "Pending"), ("false", "Yes", "Terminated")]
)
def test_sessions_are_filtered_by_whether_they_have_ended(query, chip, shown, client, operator, session_in):
    session_in(S.PENDING), session_in(S.TERMINATED)
    client.force_login(operator)
    response = client.get(reverse("session_list"), {"active": query})
    assert [row.get_status_display() for row in response.context["rows"].rows] == [shown]
    assert f"Ended: {chip}" in response.content.decode()


@pytest.mark.parametrize("sort", ["starts_at", "ends_at"])
def test_sessions_are_sorted_by_either_end_of_their_timeslot(sort, client, operator, session_in, now):
    late = with_timeslot(session_in(S.PENDING), now + HOUR, now + 5 * HOUR)
    early = with_timeslot(session_in(S.PENDING), now, now + 2 * HOUR)
    client.force_login(operator)
    rows = client.get(reverse("session_list"), {"sort": sort}).context["rows"].rows
    assert [row.pk for row in rows] == [early.pk, late.pk]


def test_future_steps_show_their_planned_times(session, now):
    with_timeslot(session, now + HOUR, now + 2 * HOUR)
    steps = {step.status: step.at for step in session_timeline(session, [], now=now) if step.at}
    assert steps == {S.RUNNING: now + HOUR, S.COLLECTING: now + 2 * HOUR}
    late = {step.status: step.at for step in session_timeline(session, [], now=now + 1.5 * HOUR) if step.at}
    assert late == {S.COLLECTING: now + 2 * HOUR}, "when it gets to run is not known any more"


def test_the_lifecycle_of_a_session_shows_seconds(page_text, session_in, time_machine):
    time_machine.move_to(NOON + timedelta(seconds=15), tick=False)
    session = with_timeslot(session_in(S.READY, now=NOON), NOON + HOUR, NOON + 2 * HOUR)
    for status, after in ((S.PENDING, 0), (S.SCHEDULED, 1), (S.INSTANTIATING, 1.5), (S.READY, 12)):
        session.transitions.filter(to_status=status).update(at=NOON + timedelta(seconds=after))
    text = page_text("session_detail", session.pk)
    assert "Pending 1 s 12:00:00 UTC Scheduled under 1 s 12:00:01 UTC Instantiating 10 s 12:00:01 UTC" in text
    assert "Ready 3 s since 12:00:12 UTC" in text
    assert "Running planned 13:00 UTC Collecting planned 14:00 UTC Stopping Terminated" in text
    assert "Timeslot 13:00 to 14:00 UTC" in text


def test_a_session_s_page_names_its_pool_and_its_slot_once_it_has_one(client, operator, session, now):
    client.force_login(operator)
    claim = session.reservations.get()
    pool_link = f'href="{reverse("pool_detail", args=[claim.pool_id])}">cml-eu</a>.'
    page = client.get(reverse("session_detail", args=[session.pk])).content.decode()
    assert pool_link in page
    assert ", on " not in without_markup(page)
    sizes = {"cpu_cores": 16, "memory_gb": 64, "storage_gb": 500, "max_leases": 10}
    slot = Slot.objects.create(pool=claim.pool, number=4, state=SlotState.READY, **sizes)
    Reservation.objects.filter(pk=claim.pk).update(phase=Phase.READY, slot=slot, assigned_at=now)
    page = client.get(reverse("session_detail", args=[session.pk])).content.decode()
    assert f'href="{reverse("slot_detail", args=[slot.pk])}">cml-eu-04</a>' in page
    assert pool_link in page


def test_the_page_of_a_session_shows_its_plan_once(page_text, session):
    text = page_text("session_detail", session.pk)
    assert "Nodes 3 nodes" in text
    assert text.count("Storage 7 GB") == 1, "the panel with what was observed has it"


def test_the_extend_form_shows_the_current_and_the_latest_end(page_text, session_in, time_machine):
    time_machine.move_to(NOON, tick=False)
    session = with_timeslot(session_in(S.RUNNING, now=NOON), NOON, NOON + timedelta(minutes=5))
    hours = session.definition.max_duration // HOUR
    latest = f"{NOON + hours * HOUR:%H:%M}"
    text = page_text("session_extend", session.pk)
    assert f"ends in 5 min, at 12:05 UTC. It can run until {latest} UTC, {hours} h from now." in text
    time_machine.move_to(NOON + timedelta(minutes=6), tick=False)
    assert "The session was due to end 1 min ago, at 12:05 UTC." in page_text("session_extend", session.pk)
    time_machine.move_to(NOON + (hours + 1) * HOUR, tick=False)
    assert "It cannot be extended further." in page_text("session_extend", session.pk)


def test_the_request_form_orders_its_fields_by_what_when_and_where(page_text, client):
    text = page_text("session_create")
    labels = ("Definition", "Project", "Owner", "Priority", "Starts", "Duration", "Ends", "Pool")
    form = text[text.index("starts the lab when a slot is assigned") :]
    places = [form.index(f" {label} ") for label in labels]
    assert places == sorted(places)
    assert "Default: the definition's pool." in form
    page = client.get(reverse("session_create")).content.decode()
    assert f'data-suggest="{reverse("suggest", args=["pools"])}"' in page
    names = page.partition('<datalist id="id_owner_names">')[2].partition("</datalist>")[0]
    assert '<option value="otto">' in names, "a list of names without JavaScript"


def test_pools_are_suggested(page_text, client, session):
    found = client.get(reverse("suggest", args=["pools"]), {"pool": "EU"}).content.decode()
    assert '<div role="option" tabindex="-1">cml-eu</div>' in found
