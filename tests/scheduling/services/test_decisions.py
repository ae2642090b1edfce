"""Stored decisions: changes only, for the configured time."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.services.sessions import cancel_session
from scheduling.capacity.steps import place
from scheduling.models import Decision, Explanation, LastVerdict, QueueOrder, Reservation, TickRun
from scheduling.selectors.queue import QueueSnapshot, in_scheduler_order, queue_snapshot, waiting
from scheduling.services.decisions import delete_old_decisions
from tests.support.fleet import active_reservation
from tests.support.scheduler_setup import FAILING, WITH_LONG_REASONS, check_leases, status_of


def test_a_placement_is_recorded_once_with_its_scores(fleet, new_session):
    slot, session = fleet.slot(), new_session()
    fleet.tick_without_errors()
    (decision,) = Decision.objects.all()
    assert (decision.outcome, decision.slot_id, decision.position) == ("placed", slot.pk, 1)
    assert {"binpack", "spot"} <= set(decision.scores)
    assert decision.tick == TickRun.objects.get()
    assert status_of(session) == SessionStatus.SCHEDULED


@pytest.mark.parametrize("scheduler", ["", FAILING, WITH_LONG_REASONS])
def test_equal_decisions_do_not_grow_the_table(configure_pool, new_session, scheduler):
    fleet = configure_pool(max_slots=1, scheduler=scheduler)
    fleet.slot(cordoned=True)
    sessions = [new_session() for _ in range(3)]
    fleet.tick_without_errors()
    first = list(Decision.objects.order_by("pk").values_list("pk", flat=True))
    for _ in range(5):
        fleet.clock.advance(seconds=10)
        fleet.tick_without_errors()
    assert list(Decision.objects.order_by("pk").values_list("pk", flat=True)) == first
    assert len(first) == len(sessions)
    assert Explanation.objects.count() == 1
    assert all(len(row.verdict) <= 60 for row in Reservation.objects.all())


def test_a_new_reason_is_a_new_decision(configure_pool, new_session):
    fleet = configure_pool(max_slots=1)
    slot = fleet.slot(cordoned=True)
    session = new_session()
    fleet.tick_without_errors()
    fleet.clock.advance(seconds=10)
    type(slot).objects.filter(pk=slot.pk).update(cordoned=False, cpu_cores=1)
    fleet.tick_without_errors()
    messages = Decision.objects.order_by("at", "pk").values_list("why__message", flat=True)
    assert list(messages) == [
        "The only ready slot does not fit: cordoned.",
        "The only ready slot does not fit: insufficient CPU (4 cores requested, at most 1 core free).",
    ]
    assert active_reservation(session).verdict == "waiting:cpu_cores"


def test_wait_reasons_are_deleted_when_sessions_are_placed(configure_pool, new_session):
    fleet = configure_pool(max_slots=1)
    slot = fleet.slot(cordoned=True)
    session = new_session()
    fleet.tick_without_errors()
    assert LastVerdict.objects.get().reservation == active_reservation(session)
    type(slot).objects.filter(pk=slot.pk).update(cordoned=False)
    fleet.tick_without_errors()
    assert (LastVerdict.objects.count(), active_reservation(session).verdict) == (0, "placed")


def test_a_recently_used_explanation_is_kept_without_references(fleet, now):
    for digest, used_at in (("old", now - timedelta(hours=2)), ("new", now)):
        Explanation.objects.create(digest=digest, main_reason="x", message="No.", slots=0, used_at=used_at)
    delete_old_decisions(now=now)
    assert list(Explanation.objects.values_list("digest", flat=True)) == ["new"]


def test_reusing_an_explanation_updates_its_time(configure_pool, new_session):
    fleet = configure_pool(max_slots=1)
    fleet.slot(cordoned=True)
    new_session()
    fleet.tick_without_errors()
    first = Explanation.objects.get().used_at
    fleet.clock.advance(seconds=10)
    new_session()
    fleet.tick_without_errors()
    assert Explanation.objects.get().used_at == first + timedelta(seconds=10)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_batches_committed_concurrently_place_every_session_once(configure_pool, new_session, monkeypatch):
    monkeypatch.setattr(place, "BATCH_SIZE", 2)
    fleet = configure_pool(max_slots=4)
    for _ in range(3):
        fleet.slot(cpu_cores=8)
    sessions = [new_session() for _ in range(7)]
    report = fleet.tick_without_errors()
    assert (report.counts["placed"], report.counts["unmet"]) == (6, 1)
    assert sorted(map(status_of, sessions)) == ["PENDING"] + ["SCHEDULED"] * 6
    outcomes = Decision.objects.values_list("outcome", flat=True)
    assert sorted(outcomes) == ["placed"] * 6 + ["waiting"]
    assert len(set(Decision.objects.values_list("reservation", flat=True))) == 7
    check_leases()


@pytest.mark.django_db(transaction=True)
def test_a_failed_batch_is_reported_and_the_others_are_committed(configure_pool, new_session, monkeypatch):
    monkeypatch.setattr(place, "BATCH_SIZE", 1)
    fleet = configure_pool(max_slots=4)
    for _ in range(3):
        fleet.slot()
    for _ in range(3):
        new_session()
    real, calls = place.assign_slots, []

    def fail_once(pool, verdicts, *, now):
        calls.append(verdicts)
        if len(calls) == 2:
            raise RuntimeError("the second fails")
        return real(pool, verdicts, now=now)

    monkeypatch.setattr(place, "assign_slots", fail_once)
    report = fleet.tick()
    assert report.errors["place"] == "RuntimeError: the second fails"
    assert report.counts["placed"] == 2
    check_leases()


def test_a_tick_that_lost_its_lease_records_nothing(fleet, new_session):
    fleet.slot(cordoned=True)
    new_session()
    tick = replace(fleet.context(), is_lease_held=lambda: False)
    place.place_waiting(tick)
    assert (Decision.objects.count(), LastVerdict.objects.count(), QueueOrder.objects.count()) == (0, 0, 0)


def test_advance_bookings_never_precede_queued_sessions(fleet, new_session, monkeypatch):
    monkeypatch.setattr(place, "QUEUE_HEAD", 2)
    fleet.slot()
    for _ in range(2):
        booking = new_session()
        type(booking).objects.filter(pk=booking.pk).update(
            starts_at=fleet.clock() + timedelta(days=7), ends_at=fleet.clock() + timedelta(days=8)
        )
    Reservation.objects.update(priority=90)
    due = new_session()
    fleet.tick_without_errors()
    assert status_of(due) == SessionStatus.SCHEDULED


def test_the_last_decision_of_a_waiting_session_is_kept(configure_pool, new_session, settings):
    settings.CONFIG["DECISION_DAYS"] = 7
    fleet = configure_pool(max_slots=1)
    fleet.slot(cordoned=True)
    new_session()
    fleet.tick_without_errors()
    fleet.clock.advance(days=8)
    fleet.tick_without_errors()
    fleet.clock.advance(days=8)
    assert delete_old_decisions(now=fleet.clock()) == 1
    assert Decision.objects.get().why.main_reason == "too-late"


def test_old_decisions_are_deleted(fleet, new_session, settings):
    settings.CONFIG["DECISION_DAYS"] = 7
    fleet.slot(cordoned=True)
    session = new_session()
    fleet.tick_without_errors()
    cancel_session(session=session, reason="no more", actor=SYSTEM, now=fleet.clock())
    assert delete_old_decisions(now=fleet.clock() + timedelta(days=6)) == 0
    assert delete_old_decisions(now=fleet.clock() + timedelta(days=8)) == 1
    assert (Decision.objects.count(), Explanation.objects.count()) == (0, 0)


def test_the_oldest_decisions_above_the_limit_of_a_pool_are_deleted(fleet, new_session, settings):
    settings.CONFIG["DECISIONS_PER_POOL"] = 2
    reservation = active_reservation(new_session())
    for number in range(5):
        at = fleet.clock() + timedelta(seconds=number)
        Decision.objects.create(
            reservation=reservation,
            tick_id=uuid4(),
            pool=fleet.pool,
            at=at,
            outcome="waiting",
            position=number,
        )
    delete_old_decisions(now=fleet.clock())
    kept = Decision.objects.order_by("position").values_list("position", flat=True)
    assert {3, 4} <= set(kept) <= {2, 3, 4}


def test_the_queue_order_is_saved(configure_pool, new_session):
    fleet = configure_pool(max_slots=1)
    fleet.slot(cordoned=True)
    low, high, first = new_session(priority=10), new_session(priority=90), new_session()
    fleet.tick_without_errors()
    reservations = [active_reservation(session).pk for session in (high, first, low)]
    order = queue_snapshot(fleet.pool)
    assert list(order.keys()) == reservations == in_scheduler_order(waiting(), now=timezone.now()).keys
    assert [order.position_of(key) for key in reservations] == [1, 2, 3]
    assert order.position_of(uuid4()) is None
    new = new_session(priority=90)
    found = in_scheduler_order(waiting(), now=timezone.now()).keys
    assert found == [*reservations, active_reservation(new).pk]


def test_an_empty_queue_has_an_empty_order(fleet, new_session):
    fleet.slot()
    new_session()
    fleet.tick_without_errors()
    assert len(queue_snapshot(fleet.pool)) == 0
    assert QueueOrder.objects.count() == 1


def test_an_id_is_found_only_at_its_own_offset():
    one, two = uuid4(), uuid4()
    between = (one.bytes + two.bytes)[8:24]
    order = QueueSnapshot(None, one.bytes + two.bytes)
    assert order.position_of(type(one)(bytes=between)) is None
    assert order.position_of(two) == 2
