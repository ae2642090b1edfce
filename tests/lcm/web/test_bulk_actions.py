"""Bulk actions: the confirmation page states the effect, and the action has that effect."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import ApiToken, ChangeLog, Job, JobState, LabletSession
from lcm.services import jobs
from lcm.tasks import run_job
from lcm.web import bulk_actions
from observations.models import DriftReview
from scheduling.models import Phase, Reservation, Slot, SlotState
from tests.support.capacity_setup import make_slot, pool_named, reserve
from tests.support.factories import make_controller

LISTS = {
    "session_list": ("session_bulk_extend", "session_bulk_priority", "session_bulk_cancel"),
    "queue_list": ("queue_bulk_move", "queue_bulk_cancel"),
    "slot_list": ("slot_bulk_cordon", "slot_bulk_uncordon", "slot_bulk_retry", "slot_bulk_drain"),
    "reservation_list": ("reservation_bulk_cancel",),
    "drift_list": ("drift_bulk_acknowledge",),
}


@pytest.fixture
def client_of(client: Client) -> Callable[..., Client]:
    def log_in(person: object) -> Client:
        client.force_login(person)
        return client

    return log_in


@pytest.fixture
def drift(active_definition, now):
    """`drift(kind)`: an open deviation."""

    def make(name: str, kind: str = "extra", **fields: object) -> DriftReview:
        return DriftReview.objects.create(
            definition=active_definition,
            fingerprint=name,
            name=name,
            kind=kind,
            first_seen=now,
            last_seen=now,
            **fields,
        )

    return make


def page_text(page: HttpResponse) -> str:
    body = re.sub(r"<[^>]+>", " ", page.content.decode())
    return re.sub(r"\s+", " ", html.unescape(body))


def selection(*rows: object) -> dict[str, list[str]]:
    return {"pk": [str(row.pk) for row in rows]}


def buttons(page: HttpResponse) -> list[str]:
    found = re.findall(r"<button[^>]*>(.*?)</button>", page.content.decode())
    return [re.sub("<[^>]+>", "", text) for text in found]


# --- confirmation page --------------------------------------------------------------------------------


def test_the_confirmation_counts_eligible_rows(client_of, operator, session_in):
    rows = [session_in(S.PENDING), session_in(S.RUNNING), session_in(S.TERMINATED)]
    page = client_of(operator).post(reverse("session_bulk_cancel"), selection(*rows))
    text = page_text(page)
    assert "Cancel 2 sessions?" in text
    assert "2 of 3 sessions can be cancelled. Sessions that have ended" in text
    assert "Cancel 2 sessions" in buttons(page)


def test_no_exclusion_is_mentioned_if_all_rows_are_eligible(client_of, operator, session_in):
    text = page_text(
        client_of(operator).post(reverse("session_bulk_cancel"), selection(session_in(S.PENDING)))
    )
    assert "Cancel 1 session?" in text
    assert "can be cancelled" not in text


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_without_eligible_rows_there_is_no_button(client_of, operator, session_in, headers):
    client, rows = client_of(operator), [session_in(S.TERMINATED), session_in(S.FAILED)]
    page = client.post(reverse("session_bulk_cancel"), selection(*rows), headers=headers)
    assert "None of the 2 sessions can be cancelled" in page_text(page)
    assert not [text for text in buttons(page) if text.startswith("Cancel")]
    assert 'name="reason"' not in page.content.decode()
    single_row_page = client.post(reverse("session_bulk_cancel"), selection(rows[0]), headers=headers)
    assert "This session cannot be cancelled" in page_text(single_row_page)


def test_rows_that_ended_before_confirmation_are_reported(client_of, operator, session_in):
    form = {**selection(session_in(S.TERMINATED)), "reason": "over"}
    page = client_of(operator).post(reverse("session_bulk_cancel"), form)
    assert page.status_code == 422
    assert "This session cannot be cancelled" in page_text(page)


def test_only_eligible_rows_count_towards_the_job_threshold(client_of, operator, session_in, monkeypatch):
    monkeypatch.setattr(bulk_actions, "AT_ONCE", 1)
    for status in (S.PENDING, S.TERMINATED, S.TERMINATED):
        session_in(status)
    form = {"all": "1", "filter_query": ""}
    page = client_of(operator).post(reverse("session_bulk_cancel"), form)
    assert "as a background job" not in page_text(page)
    client_of(operator).post(reverse("session_bulk_cancel"), {**form, "reason": "over"})
    assert not Job.objects.exists()
    session_in(S.PENDING)
    session_in(S.PENDING)
    assert "as a background job" in page_text(client_of(operator).post(reverse("session_bulk_cancel"), form))


@pytest.mark.parametrize(
    ("action", "question"),
    [
        ("slot_bulk_cordon", "Cordon 1 slot? "),
        ("slot_bulk_uncordon", "Uncordon 1 slot? "),
        ("slot_bulk_retry", "Retry 1 slot? "),
        ("slot_bulk_drain", "Drain 2 slots? "),
    ],
)
def test_slots_are_counted_by_what_their_state_allows(client_of, operator, session, action, question):
    pool = pool_named("cml-eu")
    make_slot(pool, 1)
    make_slot(pool, 2, cordoned=True)
    make_slot(pool, 3, SlotState.EMPTY)
    make_slot(pool, 4, SlotState.ERROR)
    make_slot(pool, 5, SlotState.ERROR, lease_count=1)
    page = client_of(operator).post(reverse(action), selection(*Slot.objects.all()))
    assert question in page_text(page)
    assert "of 5 slots can be" in page_text(page)


# --- offered actions by role --------------------------------------------------------------------------


@pytest.fixture
def full_lists(session, drift):
    """A row in each list."""
    drift("r1_vnc")
    make_slot(pool_named("cml-eu"), 1)


@pytest.mark.parametrize("name", LISTS)
def test_operators_are_offered_bulk_actions_and_viewers_are_not(
    client_of, viewer, operator, full_lists, name
):
    operator_page = client_of(operator).get(reverse(name)).content.decode()
    viewer_page = client_of(viewer).get(reverse(name)).content.decode()
    for action in LISTS[name]:
        assert f'formaction="{reverse(action)}"' in operator_page
        assert reverse(action) not in viewer_page
    assert 'class="select"' in operator_page
    assert 'class="select"' not in viewer_page


# --- execution ----------------------------------------------------------------------------------------


def test_deviations_are_acknowledged_together_and_conflicts_excluded(client_of, operator, drift, now):
    rows = [drift("a"), drift("b", "missing"), drift("c", "conflict"), drift("d", state="resolved")]
    client, address = client_of(operator), reverse("drift_bulk_acknowledge")
    page = client.post(address, selection(*rows))
    assert "Acknowledge 2 deviations?" in page_text(page)
    assert "2 of 4 deviations can be acknowledged. Port conflicts cannot be acknowledged" in page_text(page)
    assert 'name="until" value="' in page.content.decode()
    until = (now + timedelta(days=10)).strftime("%Y-%m-%dT%H:%M")
    page = client.post(address, {**selection(*rows), "reason": "known", "until": until}, follow=True)
    assert "2 deviations acknowledged." in page_text(page)
    states = dict(DriftReview.objects.values_list("name", "state"))
    assert states == {"a": "acknowledged", "b": "acknowledged", "c": "open", "d": "resolved"}
    assert {row.reason for row in ChangeLog.objects.filter(event="observation.drift_acknowledged")} == {
        "known"
    }


def test_a_too_long_acknowledgement_is_reported_at_its_field(client_of, operator, drift, now):
    until = (now + timedelta(days=100)).strftime("%Y-%m-%dT%H:%M")
    form = {**selection(drift("a")), "reason": "known", "until": until}
    page = client_of(operator).post(reverse("drift_bulk_acknowledge"), form)
    assert page.status_code == 422
    assert page.context["form"].errors == {"until": ["Must be in the future and within 90 days."]}
    assert DriftReview.objects.get().state == "open"


def test_many_deviations_are_acknowledged_by_a_job(client_of, operator, drift, now, monkeypatch):
    monkeypatch.setattr(bulk_actions, "AT_ONCE", 1)
    for name in ("a", "b", "c"):
        drift(name)
    until = (now + timedelta(days=10)).strftime("%Y-%m-%dT%H:%M")
    form = {"all": "1", "filter_query": "kind=extra", "reason": "known", "until": until}
    client_of(operator).post(reverse("drift_bulk_acknowledge"), form)
    job = Job.objects.get()
    assert job.title == "Acknowledge 3 deviations"
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.result, job.error) == ("3 deviations acknowledged.", "")
    assert {row.acknowledged_until.strftime("%Y-%m-%dT%H:%M") for row in DriftReview.objects.all()} == {until}


def test_waiting_sessions_are_moved_to_another_pool(client_of, operator, session_in, now):
    rows = [session_in(S.PENDING).reservations.get() for _ in range(2)]
    without_session = reserve(pool_named("cml-eu"), now)
    client, address = client_of(operator), reverse("queue_bulk_move")
    page = client.post(address, selection(*rows, without_session))
    assert "Move 2 waiting sessions to another pool?" in page_text(page)
    assert (
        "2 of 3 reservations in the queue can be moved. Reservations without a session are not moved."
        in page_text(page)
    )
    page = client.post(
        address, {**selection(*rows, without_session), "pool": "cml-us", "reason": "nearer"}, follow=True
    )
    assert "2 waiting sessions moved." in page_text(page)
    assert set(LabletSession.objects.values_list("pool", flat=True)) == {"cml-us"}
    assert {row.reason for row in ChangeLog.objects.filter(event="session.moved")} == {"nearer"}


def test_sessions_already_waiting_in_the_pool_are_not_moved(client_of, operator, session_in):
    to_move, in_pool = session_in(S.PENDING), session_in(S.PENDING, pool="cml-us")
    rows = [to_move.reservations.get(), in_pool.reservations.get()]
    client, address = client_of(operator), reverse("queue_bulk_move")
    form = {"pool": "cml-us", "reason": "nearer"}
    refused = client.post(address, {**selection(rows[1]), **form})
    assert refused.status_code == 422
    assert "None of the selected rows are eligible with these values." in page_text(refused)
    page = client.post(address, {**selection(*rows), **form}, follow=True)
    assert "1 waiting session moved." in page_text(page)


def test_a_pool_has_to_be_chosen(client_of, operator, session):
    page = client_of(operator).post(
        reverse("queue_bulk_move"), {**selection(session.reservations.get()), "reason": "x"}
    )
    assert list(page.context["form"].errors) == ["pool"]


def test_a_disabled_pool_cannot_be_chosen(client_of, operator, session):
    pool_named("off", enabled=False)
    form = {**selection(session.reservations.get()), "pool": "off", "reason": "nearer"}
    page = client_of(operator).post(reverse("queue_bulk_move"), form)
    assert page.status_code == 422
    assert "pool" in page.context["form"].errors


def test_a_move_job_counts_each_row_once(client_of, operator, session_in, monkeypatch):
    """New reservations are as old as the ones they replace, so the job encounters some of them."""
    monkeypatch.setattr(bulk_actions, "AT_ONCE", 1)
    monkeypatch.setattr(bulk_actions, "BATCH", 1)
    for _ in range(6):
        session_in(S.PENDING)
    form = {"all": "1", "filter_query": "", "pool": "cml-us", "reason": "nearer"}
    client_of(operator).post(reverse("queue_bulk_move"), form)
    job = Job.objects.get()
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.result, job.done, job.rejected) == ("6 waiting sessions moved.", 6, 0)
    assert Reservation.objects.filter(phase=Phase.PENDING, pool__name="cml-us").count() == 6


def test_waiting_reservations_are_cancelled_with_their_sessions(client_of, operator, session, now):
    rows = [session.reservations.get(), reserve(pool_named("cml-eu"), now)]
    form = {**selection(*rows), "reason": "course moved"}
    page = client_of(operator).post(reverse("queue_bulk_cancel"), form, follow=True)
    assert "2 reservations in the queue cancelled." in page_text(page)
    session.refresh_from_db()
    assert session.status == S.CANCELLED
    assert not Reservation.objects.filter(phase=Phase.PENDING).exists()


def test_reservations_without_a_session_are_cancelled_and_others_kept(client_of, operator, session, now):
    pool = pool_named("cml-eu")
    without_session, ended = reserve(pool, now, "build-1"), reserve(pool, now, "build-2")
    Reservation.objects.filter(pk=ended.pk).update(phase=Phase.EXPIRED, released_at=now)
    rows = (without_session, ended, session.reservations.get())
    client, address = client_of(operator), reverse("reservation_bulk_cancel")
    assert "1 of 3 reservations can be cancelled." in page_text(client.post(address, selection(*rows)))
    page = client.post(address, {**selection(*rows), "reason": "forgotten"}, follow=True)
    assert "1 reservation cancelled." in page_text(page)
    phases = dict(Reservation.objects.values_list("pk", "phase"))
    assert [phases[row.pk] for row in rows] == [Phase.CANCELLED, Phase.EXPIRED, Phase.PENDING]


def test_tokens_are_revoked_together(client_of, admin, controller, other_controller, now):
    ApiToken.objects.filter(pk=controller.token.pk).update(revoked_at=now)
    rows = [controller.token, other_controller.token, make_controller("third", "pool:cml-eu").token]
    client, address = client_of(admin), reverse("token_bulk_revoke")
    assert f'formaction="{address}"' in client.get(reverse("token_list")).content.decode()
    assert "Revoke 2 tokens?" in page_text(client.post(address, selection(*rows)))
    page = client.post(address, {**selection(*rows), "reason": "leaked"}, follow=True)
    assert "2 tokens revoked." in page_text(page)
    assert not ApiToken.objects.filter(revoked_at=None).exists()
    assert ChangeLog.objects.filter(event="token.revoked", reason="leaked").count() == 2


def test_slots_in_error_are_retried_together(client_of, operator, session):
    pool = pool_named("cml-eu")
    rows = [make_slot(pool, 1, SlotState.ERROR), make_slot(pool, 2, SlotState.ERROR), make_slot(pool, 3)]
    page = client_of(operator).post(
        reverse("slot_bulk_retry"), {**selection(*rows), "reason": "quota raised"}, follow=True
    )
    assert "2 slots made available." in page_text(page)
    assert [Slot.objects.get(pk=row.pk).state for row in rows] == ["EMPTY", "EMPTY", "READY"]


# --- extension, priority and the way back -----------------------------------------------------------------


def test_sessions_are_extended_up_to_the_longest_duration(client_of, operator, session_in):
    rows = [session_in(S.RUNNING), session_in(S.PENDING), session_in(S.TERMINATED)]
    ends = [row.ends_at for row in rows]
    form = {**selection(*rows), "reason": "exam", "hours": "2"}
    page = client_of(operator).post(reverse("session_bulk_extend"), form, follow=True)
    assert "2 sessions extended." in page_text(page)
    assert [LabletSession.objects.get(pk=row.pk).ends_at for row in rows] == [
        ends[0] + timedelta(hours=2),
        ends[1] + timedelta(hours=2),
        ends[2],
    ]
    page = client_of(operator).post(reverse("session_bulk_extend"), {**form, "hours": "8"}, follow=True)
    assert "0 sessions extended. 2 items rejected." in page_text(page)


def test_a_job_extends_a_session_once_although_its_worker_was_killed(
    client_of, operator, session_in, monkeypatch
):
    monkeypatch.setattr(bulk_actions, "AT_ONCE", 1)
    rows = [session_in(S.PENDING) for _ in range(3)]
    form = {"all": "1", "filter_query": "", "reason": "exam", "hours": "1"}
    client_of(operator).post(reverse("session_bulk_extend"), form)
    job = Job.objects.get()
    Job.objects.update(state=JobState.RUNNING)

    class Killed(BaseException):
        pass

    save = jobs._save_progress

    def save_one(job, step, now):
        if job.done + step.done > 1:
            raise Killed
        return save(job, step, now)

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_save_progress", save_one)
        with pytest.raises(Killed):
            jobs.run_step(Job.objects.get(pk=job.pk), now=job.created_at)
    Job.objects.update(state=JobState.QUEUED)
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.result, job.done, job.rejected) == ("3 sessions extended.", 3, 0)
    for row in rows:
        assert LabletSession.objects.get(pk=row.pk).ends_at == row.ends_at + timedelta(hours=1)


def test_waiting_sessions_get_another_priority(client_of, operator, session_in):
    rows = [session_in(S.PENDING), session_in(S.PENDING), session_in(S.RUNNING)]
    page = client_of(operator).post(reverse("session_bulk_priority"), selection(*rows))
    assert "2 of 3 sessions are waiting." in page_text(page)
    form = {**selection(*rows), "reason": "exam", "priority": "90"}
    page = client_of(operator).post(reverse("session_bulk_priority"), form, follow=True)
    assert "Priority of 2 sessions changed." in page_text(page)
    assert [LabletSession.objects.get(pk=row.pk).priority for row in rows] == [90, 90, 50]


def test_a_bulk_action_returns_to_the_list_as_it_was(client_of, operator, session_in):
    row, client = session_in(S.PENDING), client_of(operator)
    query = "status=PENDING&sort=ends_at&size=50"
    page = client.get(f"{reverse('session_list')}?{query}&cursor=&format=")
    shown = re.search(r'name="filter_query" value="([^"]*)"', page.content.decode())
    form = {**selection(row), "filter_query": html.unescape(shown[1]), "reason": "over"}
    back = f"{reverse('session_list')}?{query}"
    assert client.post(reverse("session_bulk_cancel"), form).url == back
    confirmation = client.post(reverse("session_bulk_cancel"), {"filter_query": query})
    assert confirmation.url == back
