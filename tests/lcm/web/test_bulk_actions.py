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
from lcm.models import ApiToken, ChangeLog, Job, LabletSession
from lcm.tasks import run_job
from lcm.web import bulk_actions
from observations.models import DriftReview
from scheduling.models import Phase, Reservation, Slot, SlotState
from tests.support.capacity_setup import make_slot, pool_named, reserve
from tests.support.factories import make_controller

LISTS = {
    "session_list": ("session_bulk_cancel",),
    "queue_list": ("queue_bulk_move", "queue_bulk_cancel"),
    "slot_list": ("slot_bulk_cordon", "slot_bulk_uncordon", "slot_bulk_retry", "slot_bulk_drain"),
    "reservation_list": ("reservation_bulk_cancel",),
    "drift_list": ("drift_bulk_acknowledge",),
}


@pytest.fixture
def by(client: Client) -> Callable[..., Client]:
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


def words(page: HttpResponse) -> str:
    body = re.sub(r"<[^>]+>", " ", page.content.decode())
    return re.sub(r"\s+", " ", html.unescape(body))


def ticked(*rows: object) -> dict[str, list[str]]:
    return {"pk": [str(row.pk) for row in rows]}


def buttons(page: HttpResponse) -> list[str]:
    found = re.findall(r"<button[^>]*>(.*?)</button>", page.content.decode())
    return [re.sub("<[^>]+>", "", text) for text in found]


# --- confirmation page --------------------------------------------------------------------------------


def test_the_confirmation_counts_eligible_rows(by, operator, session_in):
    rows = [session_in(S.PENDING), session_in(S.RUNNING), session_in(S.TERMINATED)]
    page = by(operator).post(reverse("session_bulk_cancel"), ticked(*rows))
    said = words(page)
    assert "Cancel 2 sessions?" in said
    assert "2 of 3 sessions can be cancelled. Sessions that have ended" in said
    assert "Cancel 2 sessions" in buttons(page)


def test_no_exclusion_is_mentioned_if_all_rows_are_eligible(by, operator, session_in):
    said = words(by(operator).post(reverse("session_bulk_cancel"), ticked(session_in(S.PENDING))))
    assert "Cancel 1 session?" in said
    assert "can be cancelled" not in said


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_without_eligible_rows_there_is_no_button(by, operator, session_in, headers):
    client, rows = by(operator), [session_in(S.TERMINATED), session_in(S.FAILED)]
    page = client.post(reverse("session_bulk_cancel"), ticked(*rows), headers=headers)
    assert "None of the 2 sessions can be cancelled" in words(page)
    assert not [text for text in buttons(page) if text.startswith("Cancel")]
    assert 'name="reason"' not in page.content.decode()
    one = client.post(reverse("session_bulk_cancel"), ticked(rows[0]), headers=headers)
    assert "This session cannot be cancelled" in words(one)


def test_rows_that_ended_before_confirmation_are_reported(by, operator, session_in):
    asked = {**ticked(session_in(S.TERMINATED)), "reason": "over"}
    page = by(operator).post(reverse("session_bulk_cancel"), asked)
    assert page.status_code == 422
    assert "This session cannot be cancelled" in words(page)


def test_only_eligible_rows_count_towards_the_job_threshold(by, operator, session_in, monkeypatch):
    monkeypatch.setattr(bulk_actions, "AT_ONCE", 1)
    for status in (S.PENDING, S.TERMINATED, S.TERMINATED):
        session_in(status)
    asked = {"all": "1", "filter_query": ""}
    page = by(operator).post(reverse("session_bulk_cancel"), asked)
    assert "as a background job" not in words(page)
    by(operator).post(reverse("session_bulk_cancel"), {**asked, "reason": "over"})
    assert not Job.objects.exists()
    session_in(S.PENDING)
    session_in(S.PENDING)
    assert "as a background job" in words(by(operator).post(reverse("session_bulk_cancel"), asked))


@pytest.mark.parametrize(
    ("action", "question"),
    [
        ("slot_bulk_cordon", "Cordon 1 slot? "),
        ("slot_bulk_uncordon", "Uncordon 1 slot? "),
        ("slot_bulk_retry", "Retry 1 slot? "),
        ("slot_bulk_drain", "Drain 2 slots? "),
    ],
)
def test_slots_are_counted_by_what_their_state_allows(by, operator, session, action, question):
    pool = pool_named("cml-eu")
    make_slot(pool, 1)
    make_slot(pool, 2, cordoned=True)
    make_slot(pool, 3, SlotState.EMPTY)
    make_slot(pool, 4, SlotState.ERROR)
    make_slot(pool, 5, SlotState.ERROR, lease_count=1)
    page = by(operator).post(reverse(action), ticked(*Slot.objects.all()))
    assert question in words(page)
    assert "of 5 slots can be" in words(page)


# --- offered actions by role --------------------------------------------------------------------------


@pytest.fixture
def full_lists(session, drift):
    """A row in each list."""
    drift("r1_vnc")
    make_slot(pool_named("cml-eu"), 1)


@pytest.mark.parametrize("name", LISTS)
def test_operators_are_offered_bulk_actions_and_viewers_are_not(by, viewer, operator, full_lists, name):
    offered = by(operator).get(reverse(name)).content.decode()
    plain = by(viewer).get(reverse(name)).content.decode()
    for action in LISTS[name]:
        assert f'formaction="{reverse(action)}"' in offered
        assert reverse(action) not in plain
    assert 'class="select"' in offered
    assert 'class="select"' not in plain


# --- execution ----------------------------------------------------------------------------------------


def test_deviations_are_acknowledged_together_and_conflicts_excluded(by, operator, drift, now):
    rows = [drift("a"), drift("b", "missing"), drift("c", "conflict"), drift("d", state="resolved")]
    client, address = by(operator), reverse("drift_bulk_acknowledge")
    page = client.post(address, ticked(*rows))
    assert "Acknowledge 2 deviations?" in words(page)
    assert "2 of 4 deviations can be acknowledged. Port conflicts cannot be acknowledged" in words(page)
    assert 'name="until" value="' in page.content.decode()
    until = (now + timedelta(days=10)).strftime("%Y-%m-%dT%H:%M")
    done = client.post(address, {**ticked(*rows), "reason": "known", "until": until}, follow=True)
    assert "2 deviations acknowledged." in words(done)
    states = dict(DriftReview.objects.values_list("name", "state"))
    assert states == {"a": "acknowledged", "b": "acknowledged", "c": "open", "d": "resolved"}
    assert {row.reason for row in ChangeLog.objects.filter(event="drift_acknowledged")} == {"known"}


def test_a_too_long_acknowledgement_is_reported_at_its_field(by, operator, drift, now):
    until = (now + timedelta(days=100)).strftime("%Y-%m-%dT%H:%M")
    asked = {**ticked(drift("a")), "reason": "known", "until": until}
    page = by(operator).post(reverse("drift_bulk_acknowledge"), asked)
    assert page.status_code == 422
    assert page.context["form"].errors == {"until": ["Must be in the future and within 90 days."]}
    assert DriftReview.objects.get().state == "open"


def test_many_deviations_are_acknowledged_by_a_job(by, operator, drift, now, monkeypatch):
    monkeypatch.setattr(bulk_actions, "AT_ONCE", 1)
    for name in ("a", "b", "c"):
        drift(name)
    until = (now + timedelta(days=10)).strftime("%Y-%m-%dT%H:%M")
    asked = {"all": "1", "filter_query": "kind=extra", "reason": "known", "until": until}
    by(operator).post(reverse("drift_bulk_acknowledge"), asked)
    job = Job.objects.get()
    assert job.title == "Acknowledge 3 deviations"
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.result, job.error) == ("3 deviations acknowledged.", "")
    assert {row.acknowledged_until.strftime("%Y-%m-%dT%H:%M") for row in DriftReview.objects.all()} == {until}


def test_waiting_sessions_are_moved_to_another_pool(by, operator, session_in, now):
    rows = [session_in(S.PENDING).reservations.get() for _ in range(2)]
    bare = reserve(pool_named("cml-eu"), now)
    client, address = by(operator), reverse("queue_bulk_move")
    page = client.post(address, ticked(*rows, bare))
    assert "Move 2 waiting sessions to another pool?" in words(page)
    assert (
        "2 of 3 reservations in the queue can be moved. Reservations without a session are not moved."
        in words(page)
    )
    done = client.post(address, {**ticked(*rows, bare), "pool": "cml-us", "reason": "nearer"}, follow=True)
    assert "2 waiting sessions moved." in words(done)
    assert set(LabletSession.objects.values_list("pool", flat=True)) == {"cml-us"}
    assert {row.reason for row in ChangeLog.objects.filter(event="session_moved_to_pool")} == {"nearer"}


def test_sessions_already_waiting_in_the_pool_are_not_moved(by, operator, session_in):
    here, there = session_in(S.PENDING), session_in(S.PENDING, pool="cml-us")
    rows = [here.reservations.get(), there.reservations.get()]
    client, address = by(operator), reverse("queue_bulk_move")
    asked = {"pool": "cml-us", "reason": "nearer"}
    refused = client.post(address, {**ticked(rows[1]), **asked})
    assert refused.status_code == 422
    assert "None of the selected rows are eligible with these values." in words(refused)
    done = client.post(address, {**ticked(*rows), **asked}, follow=True)
    assert "1 waiting session moved." in words(done)


def test_a_pool_has_to_be_chosen(by, operator, session):
    page = by(operator).post(
        reverse("queue_bulk_move"), {**ticked(session.reservations.get()), "reason": "x"}
    )
    assert list(page.context["form"].errors) == ["pool"]


def test_a_disabled_pool_cannot_be_chosen(by, operator, session):
    pool_named("off", enabled=False)
    asked = {**ticked(session.reservations.get()), "pool": "off", "reason": "nearer"}
    page = by(operator).post(reverse("queue_bulk_move"), asked)
    assert page.status_code == 422
    assert "pool" in page.context["form"].errors


def test_a_move_job_counts_each_row_once(by, operator, session_in, monkeypatch):
    """New reservations are as old as the ones they replace, so the job encounters some of them."""
    monkeypatch.setattr(bulk_actions, "AT_ONCE", 1)
    monkeypatch.setattr(bulk_actions, "BATCH", 1)
    for _ in range(6):
        session_in(S.PENDING)
    asked = {"all": "1", "filter_query": "", "pool": "cml-us", "reason": "nearer"}
    by(operator).post(reverse("queue_bulk_move"), asked)
    job = Job.objects.get()
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.result, job.done, job.refused) == ("6 waiting sessions moved.", 6, 0)
    assert Reservation.objects.filter(phase=Phase.PENDING, pool__name="cml-us").count() == 6


def test_waiting_reservations_are_cancelled_with_their_sessions(by, operator, session, now):
    rows = [session.reservations.get(), reserve(pool_named("cml-eu"), now)]
    asked = {**ticked(*rows), "reason": "course moved"}
    done = by(operator).post(reverse("queue_bulk_cancel"), asked, follow=True)
    assert "2 reservations in the queue cancelled." in words(done)
    session.refresh_from_db()
    assert session.status == S.CANCELLED
    assert not Reservation.objects.filter(phase=Phase.PENDING).exists()


def test_reservations_without_a_session_are_cancelled_and_others_kept(by, operator, session, now):
    pool = pool_named("cml-eu")
    bare, ended = reserve(pool, now, "build-1"), reserve(pool, now, "build-2")
    Reservation.objects.filter(pk=ended.pk).update(phase=Phase.EXPIRED, released_at=now)
    rows = (bare, ended, session.reservations.get())
    client, address = by(operator), reverse("reservation_bulk_cancel")
    assert "1 of 3 reservations can be cancelled." in words(client.post(address, ticked(*rows)))
    done = client.post(address, {**ticked(*rows), "reason": "forgotten"}, follow=True)
    assert "1 reservation cancelled." in words(done)
    phases = dict(Reservation.objects.values_list("pk", "phase"))
    assert [phases[row.pk] for row in rows] == [Phase.CANCELLED, Phase.EXPIRED, Phase.PENDING]


def test_tokens_are_revoked_together(by, admin, controller, other_controller, now):
    ApiToken.objects.filter(pk=controller.token.pk).update(revoked_at=now)
    rows = [controller.token, other_controller.token, make_controller("third", "pool:cml-eu").token]
    client, address = by(admin), reverse("token_bulk_revoke")
    assert f'formaction="{address}"' in client.get(reverse("token_list")).content.decode()
    assert "Revoke 2 tokens?" in words(client.post(address, ticked(*rows)))
    done = client.post(address, {**ticked(*rows), "reason": "leaked"}, follow=True)
    assert "2 tokens revoked." in words(done)
    assert not ApiToken.objects.filter(revoked_at=None).exists()
    assert ChangeLog.objects.filter(event="token_revoked", reason="leaked").count() == 2


def test_slots_in_error_are_retried_together(by, operator, session):
    pool = pool_named("cml-eu")
    rows = [make_slot(pool, 1, SlotState.ERROR), make_slot(pool, 2, SlotState.ERROR), make_slot(pool, 3)]
    done = by(operator).post(
        reverse("slot_bulk_retry"), {**ticked(*rows), "reason": "quota raised"}, follow=True
    )
    assert "2 slots made available." in words(done)
    assert [Slot.objects.get(pk=row.pk).state for row in rows] == ["EMPTY", "EMPTY", "READY"]
