"""The form that requests a session: durations and the preview of where the session would run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from lcm.models import LabletDefinition, LabletSession
from scheduling.models import Pool, Reservation, Slot, SlotState
from tests.lcm.pages.test_sessions import without_markup
from tests.support.factories import make_session

START = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
DETAIL_LIMIT = 20


@pytest.fixture
def form(session, operator, time_machine):
    """The values of a complete form."""
    time_machine.move_to(START, tick=False)
    return {
        "definition": str(session.definition),
        "project": session.project.path.replace("/", " / "),
        "owner": session.owner.username,
        "priority": "50",
        "starts_at": "2026-05-04T12:00",
        "duration": "2",
        "ends_at": "",
        "pool": "",
    }


@pytest.fixture
def preview(client, operator, form):
    """`preview(**changes)`: the text of the preview."""
    client.force_login(operator)

    def read(**changes: str) -> str:
        return without_markup(client.get(reverse("session_preview"), {**form, **changes}).content.decode())

    return read


@pytest.fixture
def ready_slot(session) -> Slot:
    pool = Pool.objects.get(name="cml-eu")
    return Slot.objects.create(
        pool=pool, number=3, state=SlotState.READY, max_leases=pool.max_leases, **pool.amounts.as_dict()
    )


@pytest.mark.parametrize(
    ("changes", "hours"),
    [
        ({"duration": "1"}, 1),
        ({"duration": "4", "ends_at": "2026-05-04T12:30"}, 4),
        ({"duration": "4", "ends_at": "nonsense"}, 4),
        ({"duration": "custom", "ends_at": "2026-05-04T15:00"}, 3),
    ],
)
def test_a_duration_or_a_custom_end_sets_the_timeslot(changes, hours, client, operator, form, session):
    client.force_login(operator)
    response = client.post(reverse("session_create"), {**form, **changes})
    assert response.status_code == 302, response.context["form"].errors
    created = LabletSession.objects.exclude(pk=session.pk).get()
    assert created.duration == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("changes", "field", "text"),
    [
        ({"duration": "custom"}, "ends_at", "Enter the end of the timeslot."),
        ({"duration": "custom", "ends_at": "nonsense"}, "ends_at", "Enter a valid date/time."),
        ({"duration": "3"}, "duration", "Select a valid choice"),
        ({"definition": "nothing"}, "definition", "There is no “nothing”."),
        ({"starts_at": "9999-12-31T23:00"}, "starts_at", "out of range"),
    ],
)
def test_a_wrong_value_is_rejected_at_its_field(changes, field, text, client, operator, form):
    client.force_login(operator)
    response = client.post(reverse("session_create"), {**form, **changes})
    assert response.status_code == 422
    errors = response.context["form"].errors
    assert list(errors) == [field]
    assert text in errors[field][0]


def test_the_preview_names_the_slot_that_fits_now(preview, ready_slot, session):
    LabletSession.objects.filter(pk=session.pk).delete()
    text = preview()
    assert text.startswith("It fits now. The next scheduling cycle places it on cml-eu-03.")
    assert "In the pool cml-eu" in text


def test_the_preview_shows_that_other_sessions_come_first(preview, ready_slot):
    Slot.objects.update(max_leases=1)
    LabletSession.objects.update(created_at=START)
    LabletSession.objects.update(starts_at=START)
    Reservation.objects.update(created_at=START - timedelta(minutes=1))
    assert preview().startswith(
        "It waits in the queue. cml-eu-03 has space, but the session ahead in the queue"
    )


def test_the_preview_shows_why_a_session_does_not_fit_and_what_happens_next(preview):
    text = preview()
    assert text.startswith("It does not fit now.")
    assert "cml-eu can launch more slots" in text


def test_the_preview_of_an_advance_booking_shows_when_it_joins_the_queue(preview):
    text = preview(starts_at="2026-05-06T12:00")
    assert text.startswith("Advance booking.")
    assert "11:45 UTC" in text


def test_the_preview_of_an_impossible_session_names_the_resource_and_the_largest_slot(preview):
    Pool.objects.update(cpu_cores=1)
    LabletDefinition.objects.update(pool="")
    assert "No cml pool has a slot with 4 cores; the largest has 1." in preview()
    assert "No slot of cml-eu has 4 cores; the largest has 1." in preview(pool="cml-eu")


@pytest.mark.parametrize(
    "changes",
    [{"definition": ""}, {"definition": "nothing"}, {"duration": "custom"}, {"starts_at": ""}],
)
def test_without_a_definition_and_a_timeslot_the_preview_says_what_is_missing(changes, preview):
    assert preview(**changes) == "Choose a definition and a timeslot to see whether the session fits now."


def test_the_preview_does_not_need_an_owner(preview, ready_slot):
    assert "cml-eu-03" in preview(owner="", project="")


def test_the_preview_writes_nothing_and_needs_the_same_queries_for_a_long_queue(
    preview, ready_slot, session, owner_sessions
):
    with CaptureQueriesContext(connection) as few:
        preview()
    owner_sessions(8)
    before = LabletSession.objects.count()
    with CaptureQueriesContext(connection) as many:
        preview()
    assert LabletSession.objects.count() == before
    assert len(many) == len(few) <= DETAIL_LIMIT
    assert not [query for query in many if not query["sql"].startswith("SELECT")]


@pytest.fixture
def owner_sessions(session):
    def add(count: int) -> None:
        for _ in range(count):
            make_session(session.definition, session.project, session.owner)

    return add


def test_a_session_whose_kernels_may_be_on_different_slots_is_previewed_node_by_node(
    preview, ready_slot, session
):
    LabletSession.objects.filter(pk=session.pk).delete()
    type(session.definition).objects.update(placement="spread")
    assert preview().startswith("It fits now.")
    Slot.objects.update(cpu_cores="0.5")
    assert "does not fit: insufficient CPU" in preview()


def test_without_javascript_a_button_shows_the_preview(client, operator, form, ready_slot):
    client.force_login(operator)
    before = LabletSession.objects.count()
    page = client.post(reverse("session_create"), {**form, "check": "1"}).content.decode()
    assert "cml-eu-03 has space" in page or "It fits now." in page
    assert LabletSession.objects.count() == before
    assert f'value="{form["definition"]}"' in page


def test_a_revision_that_no_slot_could_hold_needs_a_confirmation(client, admin, session):
    client.force_login(admin)
    definition = session.definition
    url = reverse("definition_revise", args=[definition.pk])
    values = {
        "cpu_cores": "900",
        "memory_gb": "2",
        "storage_gb": "7",
        "gpu": "0",
        "reason": "grows",
        "based_on": "1",
    }
    Pool.objects.update(cpu_cores=16)
    refused = client.post(url, values)
    assert refused.status_code == 422
    assert "No slot of cml-eu has 900 cores; the largest has 16." in refused.content.decode()
    assert definition.revisions.count() == 1
    assert client.post(url, {**values, "confirmed": "on"}).status_code == 302
    assert definition.revisions.count() == 2
    values = {**values, "cpu_cores": "3", "based_on": "2"}
    assert client.post(url, values).status_code == 302, "a requirement that fits needs none"


@pytest.mark.parametrize("changes", [
    {"starts_at": "2026-05-03T12:00"},
    {"starts_at": "2026-05-04T10:00"},
    {"duration": "custom", "ends_at": "2026-06-04T12:00"},
])  # fmt: skip
def test_a_timeslot_that_cannot_be_requested_has_no_preview(changes, preview, ready_slot):
    assert "Choose a definition and a timeslot" in preview(**changes)
