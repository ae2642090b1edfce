"""The complete tick: its order, its lease, its report, and no calls of the provider."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic

import pytest
from django.utils import timezone

from scheduling import tasks
from scheduling.capacity import tick
from scheduling.capacity.tick import STEPS, scheduling_tick
from scheduling.coordination import leases
from scheduling.coordination.leases import lease
from scheduling.models import Decision, LaunchAttempt, Phase, ProcessLease, Reservation, SlotState, TickRun
from scheduling.services.slots import record_interruption
from tests.support.fake_runtime import NoMetrics
from tests.support.fleet import phases

S = SlotState
NAMES = ["expire", "interrupt", "place", "launch", "keep_minimum", "scale_down"]


def test_the_steps_run_in_the_order_of_the_design():
    assert [name for name, _ in STEPS] == NAMES


def fail(*arguments, **fields):
    raise RuntimeError("out of luck")


@pytest.mark.parametrize("name", NAMES)
def test_a_step_that_fails_is_reported_and_the_others_still_run(configure_pool, monkeypatch, name):
    fleet = configure_pool(max_slots=9, min_slots=4, warm_slots=0)
    ready = [fleet.slot(), fleet.slot()]
    expired = fleet.reservation(ttl=5)
    fleet.clock.advance(seconds=700)
    record_interruption(slot=fleet.slot(), deadline=fleet.clock() + timedelta(minutes=2), now=fleet.clock())
    waiting = [fleet.reservation(12, ttl=9999) for _ in range(3)]
    steps = tuple((each, fail if each == name else step) for each, step in STEPS)
    monkeypatch.setattr(tick, "STEPS", steps)
    report = fleet.tick()
    assert report.errors == {name: "RuntimeError: out of luck"}
    assert list(report.step_ms) == NAMES
    effects = {
        "expire": phases([expired]) == [Phase.EXPIRED],
        "interrupt": bool(fleet.slots(S.DRAINING)),
        "place": phases(waiting).count(Phase.READY) == len(ready),
        "launch": report.counts.get("launched_for_demand", 0) > 0,
        "keep_minimum": report.counts.get("launched_for_minimum", 0) > 0,
    }
    lost = {name} | ({"launch"} if name == "place" else set())
    assert {step for step, worked in effects.items() if not worked} == lost - {"scale_down"}
    assert TickRun.objects.latest("started_at").errors == report.errors
    monkeypatch.undo()
    assert fleet.tick().errors == {}


def test_only_one_tick_per_pool_runs_at_a_time(fleet):
    fleet.reservation()
    with lease(f"tick:{fleet.pool.pk}", length=timedelta(minutes=1)):
        assert scheduling_tick(fleet.pool, fleet.runtime, fleet.clock, NoMetrics()) is None
    assert not fleet.slots()
    assert len(fleet.tick().attempts) == 1
    assert not ProcessLease.objects.exists()


def test_the_next_tick_runs_after_the_lease_of_a_dead_process_expires(fleet):
    dead = ProcessLease.objects.create(
        name=f"tick:{fleet.pool.pk}", holder="dead", expires_at=timezone.now() + timedelta(hours=1)
    )
    assert scheduling_tick(fleet.pool, fleet.runtime, fleet.clock, NoMetrics()) is None
    dead.expires_at = timezone.now() - timedelta(seconds=1)
    dead.save()
    assert fleet.tick() is not None


def test_a_tick_that_lost_its_lease_stops(configure_pool, monkeypatch):
    fleet = configure_pool(min_slots=2)

    def lose_lease(context):
        frozen = monotonic() + 60
        monkeypatch.setattr(leases, "monotonic", lambda: frozen)
        ProcessLease.objects.update(holder="someone else")

    steps = tuple((name, lose_lease if name == "place" else step) for name, step in STEPS)
    monkeypatch.setattr(tick, "STEPS", steps)
    report = fleet.tick()
    assert report.errors == {"launch": "the lease was lost"}
    assert report.attempts == []
    assert ProcessLease.objects.get().holder == "someone else"


def test_a_tick_with_two_hundred_launches_makes_no_provider_calls(configure_pool):
    """The duration of a provider call does not matter: the tick makes none."""
    fleet = configure_pool(max_slots=200, min_slots=200)
    report = fleet.tick_without_errors()
    assert len(report.attempts) == 200
    assert fleet.runtime.calls == []
    fleet.launch()
    assert fleet.runtime.count("launch") == 200


@pytest.mark.parametrize("state", S)
def test_a_tick_makes_no_provider_calls_in_any_slot_state(configure_pool, state):
    fleet = configure_pool(min_slots=1, warm_slots=1)
    fleet.slot(state)
    fleet.reservation(), fleet.reservation(ttl=1)
    fleet.runtime.calls.clear()
    for minutes in (0, 1, 60):
        fleet.clock.advance(minutes=minutes)
        fleet.tick_without_errors()
    assert fleet.runtime.calls == []


def test_idle_ticks_share_one_row_and_busy_ticks_have_their_own(fleet):
    for _ in range(5):
        fleet.tick_without_errors()
        fleet.clock.advance(seconds=5)
    assert TickRun.objects.count() == 1
    assert TickRun.objects.get().started_at == fleet.clock() - timedelta(seconds=5)
    fleet.reservation()
    fleet.tick_without_errors()
    assert TickRun.objects.count() == 2
    assert TickRun.objects.latest("started_at").counts == {
        "new_wait_reasons": 1,
        "unmet": 1,
        "launched_for_demand": 1,
    }


def test_a_tick_with_a_new_wait_reason_keeps_its_row_and_its_decisions(configure_pool):
    fleet = configure_pool(max_slots=1)
    fleet.slot(cordoned=True)
    fleet.reservation(ttl=9999)
    for _ in range(4):
        fleet.tick_without_errors()
        fleet.clock.advance(seconds=5)
    first, idle = TickRun.objects.order_by("started_at")
    assert (first.counts, idle.counts) == ({"new_wait_reasons": 1, "unmet": 1}, {"unmet": 1})
    decision = Decision.objects.get()
    assert (decision.tick_id, decision.at) == (first.pk, first.started_at)


def test_busy_ticks_with_equal_counts_have_separate_rows(fleet):
    for _ in range(2):
        fleet.reservation(ttl=1)
        fleet.clock.advance(seconds=5)
        fleet.tick_without_errors()
    assert [run.counts for run in TickRun.objects.all()] == [{"expired": 1}] * 2


def test_repeated_ticks_without_changes_do_not_change_reservations(fleet, new_session):
    fleet.slot()
    new_session(), fleet.reservation(ttl=9999)
    fleet.tick_without_errors()
    before = list(Reservation.objects.order_by("pk").values())
    for _ in range(5):
        fleet.tick_without_errors()
    assert list(Reservation.objects.order_by("pk").values()) == before


def test_placement_follows_priority_then_age(fleet, new_session):
    low, old, young, high = (
        fleet.reservation(16, priority=10, ttl=9999),
        fleet.reservation(16, ttl=9999),
        None,
        None,
    )
    fleet.clock.advance(seconds=1)
    young, high = fleet.reservation(16, ttl=9999), fleet.reservation(16, priority=90, ttl=9999)
    for expected in (high, old, young, low):
        fleet.slot()
        fleet.tick_without_errors()
        assert phases([expected]) == [Phase.READY]


def test_the_tick_task_enqueues_new_and_lost_launches(configure_pool, monkeypatch):
    fleet = configure_pool(min_slots=2)
    enqueued = []
    monkeypatch.setattr(
        tasks.launch_slot, "apply_async", lambda arguments, **_: enqueued.append(arguments[0])
    )
    tasks.tick_pool(str(fleet.pool.pk))
    attempts = [str(key) for key in LaunchAttempt.objects.values_list("pk", flat=True)]
    assert sorted(enqueued) == sorted(attempts)
    enqueued.clear()
    tasks.tick_pool(str(fleet.pool.pk))
    assert enqueued == []
    LaunchAttempt.objects.update(due_at=fleet.clock())
    tasks.tick_pool(str(fleet.pool.pk))
    assert sorted(enqueued) == sorted(attempts)
    enqueued.clear()
    tasks.tick_pool(str(fleet.pool.pk))
    assert enqueued == []


def test_tasks_for_deleted_rows_do_nothing(db):
    missing_id = "00000000-0000-4000-8000-000000000000"
    tasks.tick_pool(missing_id)
    tasks.reconcile(missing_id)
    tasks.launch_slot(missing_id)


def test_a_tick_and_a_reconciliation_are_enqueued_for_each_pool(fleet, monkeypatch):
    enqueued = []
    monkeypatch.setattr(tasks.tick_pool, "apply_async", lambda arguments, **_: enqueued.append(arguments))
    monkeypatch.setattr(tasks.reconcile, "apply_async", lambda arguments, **_: enqueued.append(arguments))
    tasks.tick_all()
    tasks.reconcile_all()
    assert enqueued == [(str(fleet.pool.pk),)] * 2


def test_the_tasks_fill_a_simulated_pool(configure_pool, monkeypatch):
    fleet = configure_pool(min_slots=1, runtime_settings={"launch_seconds": 0, "boot_seconds": 0})
    monkeypatch.setattr(
        tasks.launch_slot, "apply_async", lambda arguments, **_: tasks.launch_slot(*arguments)
    )
    tasks.tick_pool(str(fleet.pool.pk))
    for _ in range(2):
        tasks.reconcile(str(fleet.pool.pk))
    assert fleet.states() == [S.READY]


def test_old_ticks_are_deleted(fleet, time_machine):
    fleet.tick_without_errors()
    time_machine.move_to(fleet.clock() + timedelta(days=2, seconds=1))
    tasks.delete_old_records()
    assert not TickRun.objects.exists()


def test_old_expired_leases_are_deleted(fleet, time_machine):
    time_machine.move_to(fleet.clock())
    for name, age in (("launch:1", timedelta(days=2, seconds=1)), ("launch:2", timedelta(days=1))):
        ProcessLease.objects.create(name=name, holder="dead", expires_at=fleet.clock() - age)
    tasks.delete_old_records()
    assert ProcessLease.objects.get().name == "launch:2"


def test_an_error_with_any_text_is_recorded(fleet, monkeypatch):
    def raise_error(context):
        raise ValueError("a\x00b")

    monkeypatch.setattr(tick, "STEPS", (("place", raise_error),))
    assert fleet.tick().errors == {"place": "ValueError: a\ufffdb"}
    assert TickRun.objects.get().errors == {"place": "ValueError: a\ufffdb"}


class BrokenMetrics:
    def observe(self, pool, report):
        raise ZeroDivisionError("oh")


def test_metrics_that_fail_do_not_lose_the_launches(configure_pool):
    fleet = configure_pool(min_slots=2)
    report = scheduling_tick(fleet.pool, fleet.runtime, fleet.clock, BrokenMetrics())
    assert (len(report.attempts), report.errors) == (2, {"metrics": "ZeroDivisionError: oh"})


def test_a_tick_that_cannot_be_recorded_does_not_lose_the_launches(configure_pool, monkeypatch):
    fleet = configure_pool(min_slots=2)
    monkeypatch.setattr(tick, "_record", fail)
    report = fleet.tick()
    assert (len(report.attempts), list(report.errors)) == (2, ["record"])
    assert not ProcessLease.objects.exists()


def test_a_session_requested_during_the_tick_is_not_placed_before_its_request(fleet, new_session):
    fleet.slot()
    tick_start = fleet.clock()
    requested = fleet.clock.advance(milliseconds=67)
    session = new_session()
    fleet.clock.now = tick_start
    assert fleet.tick_without_errors().counts["placed"] == 1
    assert set(session.transitions.values_list("at", flat=True)) == {requested}
