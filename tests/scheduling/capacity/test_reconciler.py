"""Slots follow the provider's state; orphans are terminated, instances of other owners are not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.lifecycle import SessionStatus
from scheduling.capacity.reconciler import reconcile_pool
from scheduling.capacity.runtimes.base import (
    Health,
    InstanceState,
    Interruption,
    Misconfigured,
    RuntimeFailure,
    Throttled,
)
from scheduling.coordination.leases import lease
from scheduling.models import LaunchAttempt, Phase, Slot, SlotState
from scheduling.services.slots import terminate_slot
from tests.support.fleet import begin_launch, phases

S = SlotState
WITH_INSTANCE = [S.BOOTING, S.BINDING, S.READY, S.DRAINING, S.TERMINATING]


def state_of(slot):
    slot.refresh_from_db()
    return slot.state


def test_the_full_life_cycle_of_a_slot(configure_pool):
    fleet = configure_pool(min_slots=1)
    fleet.tick()
    states = fleet.states()
    fleet.launch()
    states += fleet.states()
    for _ in range(2):
        fleet.reconcile()
        states += fleet.states()
    configure_pool(min_slots=0)
    fleet.clock.advance(minutes=10)
    fleet.tick()
    states += fleet.states()
    for _ in range(3):
        fleet.reconcile()
        states += fleet.states()
    assert states == [
        S.LAUNCHING, S.BOOTING, S.BINDING, S.READY, S.DRAINING, S.TERMINATING, S.TERMINATING, S.EMPTY
    ]  # fmt: skip
    assert fleet.runtime.alive == []


def test_booting_waits_for_the_instance_to_run(fleet):
    slot = fleet.slot(S.BOOTING)
    fleet.runtime.boots = False
    fleet.reconcile()
    assert state_of(slot) == S.BOOTING
    fleet.runtime.boots = True
    fleet.reconcile()
    assert (state_of(slot), slot.endpoint) == (S.BINDING, fleet.runtime.alive[0].endpoint)


def test_binding_waits_for_the_worker_to_respond(fleet):
    slot = fleet.slot(S.BINDING)
    fleet.runtime.health = Health(False, "CML reports that it is not ready.")
    fleet.reconcile()
    assert state_of(slot) == S.BINDING
    fleet.runtime.health = Health(True, version="2.9.1")
    now = fleet.clock.advance(seconds=5)
    fleet.reconcile()
    assert (state_of(slot), slot.version, slot.idle_since, slot.state_deadline) == (
        S.READY,
        "2.9.1",
        now,
        None,
    )


def test_draining_ends_with_the_last_lease(fleet, as_operator):
    slot = fleet.slot()
    reservation = fleet.assign(fleet.reservation(ttl=9999), slot)
    Slot.objects.filter(pk=slot.pk).update(state=S.DRAINING)
    fleet.reconcile()
    assert state_of(slot) == S.DRAINING
    type(reservation).objects.filter(pk=reservation.pk).update(expires_at=fleet.clock())
    fleet.tick()
    fleet.reconcile()
    assert state_of(slot) == S.TERMINATING


def test_terminating_waits_until_the_instance_is_gone(fleet):
    slot = fleet.slot(S.TERMINATING)
    fleet.runtime.terminates_at_once = False
    fleet.reconcile()
    fleet.reconcile()
    assert (state_of(slot), fleet.runtime.count("terminate")) == (S.TERMINATING, 1)
    fleet.runtime.set_state(slot.instance_id, InstanceState.GONE)
    fleet.reconcile()
    assert (state_of(slot), slot.instance_id) == (S.EMPTY, "")


def test_a_failed_termination_is_reported_and_retried(fleet, monkeypatch):
    fleet.slot(S.TERMINATING)
    real = fleet.runtime.terminate
    monkeypatch.setattr(fleet.runtime, "terminate", _raise_throttled)
    assert "slow down" in fleet.reconcile().errors[0]
    monkeypatch.setattr(fleet.runtime, "terminate", real)
    fleet.reconcile()
    fleet.reconcile()
    assert fleet.states() == [S.EMPTY]


def _raise_throttled(instance_id):
    raise Throttled("slow down")


def test_an_error_state_ends_at_its_deadline(fleet):
    slot = fleet.slot(S.ERROR)
    fleet.clock.advance(seconds=299)
    fleet.reconcile()
    assert state_of(slot) == S.ERROR
    fleet.clock.advance(seconds=1)
    fleet.reconcile()
    assert state_of(slot) == S.EMPTY


def test_an_instance_of_a_lost_response_is_adopted_by_its_token(fleet):
    slot = fleet.slot(S.LAUNCHING)
    fleet.runtime.loses_responses = True
    fleet.launch()
    fleet.reconcile()
    attempt = slot.attempts.get()
    assert (state_of(slot), attempt.outcome) == (S.BOOTING, "launched")
    assert slot.instance_id == attempt.instance_id == fleet.runtime.alive[0].id


def test_a_late_response_after_the_adoption_changes_nothing(fleet):
    fleet.slot(S.LAUNCHING)
    fleet.runtime.loses_responses = True
    fleet.launch()
    fleet.reconcile()
    before = Slot.objects.values().get()
    fleet.runtime.loses_responses = False
    attempt = LaunchAttempt.objects.get()
    from scheduling.capacity.launcher import record_launch

    assert not record_launch(attempt, fleet.runtime.alive[0], now=fleet.clock())
    assert Slot.objects.values().get() == before


def test_an_instance_with_another_token_is_not_adopted(fleet):
    slot = fleet.slot(S.LAUNCHING)
    fleet.runtime.add("i-other", token="other", slot_id=str(slot.pk))
    fleet.reconcile()
    assert state_of(slot) == S.LAUNCHING


@pytest.mark.parametrize(("minutes", "alive"), [(9, 1), (10, 0)])
def test_a_tagged_orphan_is_collected_after_the_grace_period_only(fleet, minutes, alive):
    fleet.runtime.add("i-orphan", token="forgotten")
    fleet.clock.advance(minutes=minutes)
    fleet.reconcile()
    assert len(fleet.runtime.alive) == alive


@pytest.mark.parametrize(
    ("state", "is_terminated"),
    [
        (InstanceState.PENDING, True),
        (InstanceState.RUNNING, True),
        (InstanceState.STOPPED, True),
        (InstanceState.STOPPING, False),
        (InstanceState.GONE, False),
    ],
)
def test_orphans_are_terminated_unless_they_are_already_stopping(fleet, state, is_terminated):
    fleet.runtime.boots = False
    fleet.runtime.add("i-orphan", token="forgotten", state=state)
    fleet.clock.advance(hours=1)
    fleet.reconcile()
    assert fleet.runtime.count("terminate") == is_terminated


def test_an_instance_of_a_slot_or_open_attempt_is_not_an_orphan(fleet):
    fleet.slot(S.READY)
    slot = fleet.slot(S.LAUNCHING)
    Slot.objects.filter(pk=slot.pk).update(state_deadline=fleet.clock() + timedelta(days=1))
    fleet.runtime.add("i-awaited", token=slot.attempts.get().token)
    fleet.clock.advance(hours=1)
    fleet.reconcile()
    assert fleet.runtime.count("terminate") == 0


@pytest.mark.parametrize("state", WITH_INSTANCE)
def test_a_slot_whose_instance_vanished_is_empty(fleet, state):
    slot = fleet.slot(state)
    fleet.runtime.vanish(slot.instance_id)
    fleet.reconcile()
    assert (state_of(slot), slot.instance_id) == (S.EMPTY, "")


@pytest.mark.parametrize("state", [S.READY, S.DRAINING, S.TERMINATING])
@pytest.mark.parametrize(
    ("status", "after"),
    [(SessionStatus.SCHEDULED, SessionStatus.PENDING), (SessionStatus.RUNNING, SessionStatus.FAILED)],
)
def test_sessions_of_a_vanished_instance_are_requeued_or_fail(fleet, session_on, state, status, after):
    slot = fleet.slot()
    session, reservation = session_on(slot, status), fleet.assign(fleet.reservation(), slot)
    Slot.objects.filter(pk=slot.pk).update(state=state)
    fleet.runtime.vanish(slot.instance_id)
    fleet.reconcile()
    session.refresh_from_db()
    assert (state_of(slot), slot.lease_count) == (S.EMPTY, 0)
    assert (session.status, phases([reservation])) == (after, [Phase.FAILED])


@pytest.mark.parametrize("instance_state", [InstanceState.STOPPED, InstanceState.STOPPING])
@pytest.mark.parametrize("state", [S.BOOTING, S.BINDING, S.READY, S.DRAINING])
def test_a_slot_whose_instance_was_stopped_terminates_and_its_sessions_fail(
    fleet, session_on, state, instance_state
):
    slot = fleet.slot(state if state in (S.BOOTING, S.BINDING) else S.READY)
    session = session_on(slot, SessionStatus.RUNNING) if slot.state == S.READY else None
    Slot.objects.filter(pk=slot.pk).update(state=state)
    fleet.runtime.set_state(slot.instance_id, instance_state)
    fleet.reconcile()
    assert (state_of(slot), slot.lease_count) == (S.TERMINATING, 0)
    if session:
        session.refresh_from_db()
        assert session.status == SessionStatus.FAILED


@pytest.mark.parametrize(
    ("state", "seconds", "after", "reason"),
    [
        (S.LAUNCHING, 300, S.EMPTY, "no response to the launch request in time"),
        (S.BOOTING, 300, S.TERMINATING, "did not boot in time"),
        (S.BINDING, 180, S.TERMINATING, "its worker did not respond in time: not ready"),
        (S.TERMINATING, 300, S.ERROR, "its instance did not terminate in time"),
    ],
)
def test_an_overdue_slot_changes_state_exactly_at_its_deadline(fleet, state, seconds, after, reason):
    slot = fleet.slot(state)
    fleet.runtime.boots, fleet.runtime.terminates_at_once = False, False
    fleet.runtime.health = Health(False, "not ready")
    fleet.clock.advance(seconds=seconds - 1)
    fleet.reconcile()
    assert state_of(slot) == state
    fleet.clock.advance(seconds=1)
    fleet.reconcile()
    assert (state_of(slot), slot.reason) == (after, reason)


def test_a_slot_that_did_not_terminate_in_time_becomes_empty_and_its_instance_is_collected(fleet):
    slot = fleet.slot(S.TERMINATING)
    fleet.runtime.terminates_at_once = False
    fleet.clock.advance(seconds=300)
    fleet.reconcile()
    assert state_of(slot) == S.ERROR
    fleet.runtime.terminates_at_once = True
    fleet.runtime.set_state(slot.instance_id, InstanceState.RUNNING)
    fleet.clock.advance(seconds=300)
    for _ in range(3):
        fleet.round(60)
    assert state_of(slot) == S.EMPTY
    assert fleet.runtime.alive == []


DESCRIBE_ERRORS = [RuntimeFailure("no route to host"), ZeroDivisionError("no route to host")]


@pytest.mark.parametrize("error", DESCRIBE_ERRORS, ids=["a failure", "a bug"])
@pytest.mark.parametrize("state", S)
def test_a_failed_describe_changes_nothing_within_the_deadlines(fleet, state, error):
    slot = fleet.slot(state)
    fleet.runtime.describe_error = error
    fleet.clock.advance(seconds=119)
    before = Slot.objects.values().get(pk=slot.pk)
    assert fleet.reconcile().errors == ["no route to host"]
    assert Slot.objects.values().get(pk=slot.pk) == before
    assert fleet.runtime.count("terminate") == 0


@pytest.mark.parametrize(
    ("state", "after"),
    [
        (S.LAUNCHING, S.EMPTY),
        (S.BOOTING, S.TERMINATING),
        (S.BINDING, S.TERMINATING),
        (S.READY, S.READY),
        (S.DRAINING, S.TERMINATING),
        (S.TERMINATING, S.ERROR),
        (S.ERROR, S.EMPTY),
    ],
)
def test_deadlines_apply_while_describe_fails(fleet, state, after):
    """An instance that still runs is an orphan, collected once it is listed again."""
    slot = fleet.slot(state)
    fleet.runtime.describe_error = RuntimeFailure("no route to host")
    fleet.clock.advance(seconds=301)
    fleet.reconcile()
    assert state_of(slot) == after
    fleet.runtime.describe_error = None
    for _ in range(8):
        fleet.round(120)
    assert len(fleet.runtime.alive) == len(fleet.slots(S.READY, S.DRAINING))


def test_a_draining_slot_waits_for_its_lease_while_describe_fails(fleet):
    slot = fleet.slot(S.DRAINING)
    Slot.objects.filter(pk=slot.pk).update(lease_count=1)
    fleet.runtime.describe_error = RuntimeFailure("no route to host")
    fleet.clock.advance(seconds=301)
    fleet.reconcile()
    assert state_of(slot) == S.DRAINING


@pytest.mark.parametrize(("error", "stopped"), [(RuntimeFailure("no"), ""), (Misconfigured("no"), "no")])
def test_a_refused_termination_is_reported_and_a_permanent_failure_stops_the_pool(
    fleet, monkeypatch, error, stopped
):
    slot = fleet.slot(S.TERMINATING)

    def refuse(instance_id):
        raise error

    monkeypatch.setattr(fleet.runtime, "terminate", refuse)
    assert fleet.reconcile().errors == [f"{slot.instance_id}: no"]
    assert fleet.reload_pool().stopped_reason == stopped
    fleet.clock.advance(seconds=301)
    fleet.reconcile()
    slot.refresh_from_db()
    assert (slot.state, slot.reason) == (S.ERROR, "its instance did not terminate in time: no")


def test_a_configuration_error_in_describe_stops_the_pool(fleet):
    fleet.slot()
    fleet.runtime.describe_error = Misconfigured("no such key")
    fleet.reconcile()
    assert fleet.reload_pool().stopped_reason == "no such key"


def test_capacity_in_flight_does_not_count_after_its_deadline_while_describe_fails(fleet):
    fleet.reservation(ttl=86_400)
    fleet.slot(S.BOOTING)
    fleet.runtime.describe_error = RuntimeFailure("no route to host")
    assert fleet.tick_without_errors().attempts == []
    fleet.clock.advance(seconds=300)
    fleet.reconcile()
    report = fleet.tick_without_errors()
    assert (report.counts, report.attempts) == ({"unmet": 1}, [])
    fleet.clock.now = fleet.reload_pool().backoff_until
    assert len(fleet.tick_without_errors().attempts) == 1


def test_a_slot_that_fails_at_every_reconciliation_still_times_out(fleet, monkeypatch):
    from scheduling.capacity import reconciler

    slot = fleet.slot(S.BINDING)
    monkeypatch.setattr(reconciler, "_reconcile_binding", _raise_bug)
    fleet.reconcile()
    assert state_of(slot) == S.BINDING
    fleet.clock.advance(seconds=181)
    assert fleet.reconcile().errors
    assert state_of(slot) == S.TERMINATING


def _raise_bug(*arguments):
    raise ZeroDivisionError("oh")


def test_a_probe_that_raises_counts_as_not_ready(fleet):
    broken, other = fleet.slot(S.BINDING), fleet.slot(S.BINDING)
    real = fleet.runtime.probe

    def probe(instance):
        return _raise_bug() if instance.id == broken.instance_id else real(instance)

    fleet.runtime.probe = probe
    fleet.reconcile()
    assert (state_of(broken), state_of(other)) == (S.BINDING, S.READY)
    fleet.clock.advance(seconds=181)
    fleet.reconcile()
    assert "ZeroDivisionError: oh" in Slot.objects.get(pk=broken.pk).reason


def test_unreadable_notices_do_not_stop_the_reconciliation(fleet):
    slot = fleet.slot(S.BINDING)
    fleet.runtime.interruptions = _raise_bug
    fleet.reconcile()
    assert state_of(slot) == S.READY


def test_valid_parts_of_a_workers_report_are_stored(fleet):
    slot, silent = fleet.slot(S.BINDING), fleet.slot(S.BINDING)
    fleet.runtime.health = Health(True, version="2.9\x00\ud800")
    fleet.reconcile()
    assert (state_of(slot), slot.version) == (S.READY, "2.9\ufffd\ufffd")
    Slot.objects.filter(pk=silent.pk).update(state=S.BINDING, state_deadline=fleet.clock())
    fleet.runtime.health = Health(False, "\x00")
    fleet.reconcile()
    assert (state_of(silent), silent.reason) == (S.TERMINATING, "its worker did not respond in time: \ufffd")


def test_a_slot_in_error_loses_its_leases_at_its_deadline(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot, SessionStatus.RUNNING)
    Slot.objects.filter(pk=slot.pk).update(state=S.ERROR, state_deadline=fleet.clock())
    fleet.reconcile()
    session.refresh_from_db()
    assert (state_of(slot), slot.lease_count, session.status) == (S.EMPTY, 0, SessionStatus.FAILED)


def test_a_failing_slot_does_not_stop_the_others(fleet, monkeypatch):
    from scheduling.capacity import reconciler

    first, second = fleet.slot(S.BOOTING), fleet.slot(S.BOOTING)
    real = reconciler.move_slot

    def break_one(*, slot, **fields):
        if slot.pk == first.pk:
            raise RuntimeError("broken")
        return real(slot=slot, **fields)

    monkeypatch.setattr(reconciler, "move_slot", break_one)
    assert "broken" in fleet.reconcile().errors[0]
    assert (state_of(first), state_of(second)) == (S.BOOTING, S.BINDING)


def test_a_stuck_slot_never_blocks_others(configure_pool):
    fleet = configure_pool(min_slots=2)
    stuck = fleet.slot(S.TERMINATING)
    fleet.runtime.terminates_at_once = False
    for _ in range(6):
        fleet.round(120)
    assert [slot.number for slot in fleet.slots(S.READY)] == [2, 3]
    assert state_of(stuck) != S.READY


def test_an_instance_launched_during_the_provider_call_does_not_count_as_vanished(fleet):
    slot = fleet.slot(S.LAUNCHING)
    real_describe = fleet.runtime.describe

    def describe_then_launch():
        acknowledgement = list(real_describe())
        fleet.launch()
        return acknowledgement

    fleet.runtime.describe = describe_then_launch
    fleet.reconcile()
    assert state_of(slot) == S.BOOTING


def test_an_instance_launched_during_the_provider_call_is_not_an_orphan(fleet):
    """Its slot was empty when the pass began, and the provider gives no launch time."""
    slot = fleet.slot(S.EMPTY)
    real_describe = fleet.runtime.describe

    def launch_then_describe():
        attempt = begin_launch(Slot.objects.select_related("pool").get(pk=slot.pk), now=fleet.clock())
        fleet.runtime.add("i-new", token=attempt.token, launched_at=None)
        fleet.runtime.describe = real_describe
        return real_describe()

    fleet.runtime.describe = launch_then_describe
    fleet.reconcile()
    assert fleet.runtime.count("terminate") == 0
    fleet.reconcile()
    slot.refresh_from_db()
    assert (slot.state, slot.instance_id) == (S.BOOTING, "i-new")


def test_a_notice_that_cannot_be_acknowledged_does_not_block_the_others(fleet):
    slots = [fleet.slot(), fleet.slot()]
    deadline = fleet.clock() + timedelta(minutes=2)
    acknowledged = []

    def fail_to_acknowledge():
        raise RuntimeFailure("not allowed to delete")

    acknowledgements = [fail_to_acknowledge, lambda: acknowledged.append(True)]
    fleet.runtime.notices = [
        Interruption(slot.instance_id, deadline, acknowledge=acknowledgement)
        for slot, acknowledgement in zip(slots, acknowledgements, strict=True)
    ]
    fleet.reconcile()
    assert [slot.interruption_deadline for slot in fleet.slots()] == [deadline] * 2
    assert acknowledged == [True]


def test_recorded_notices_are_acknowledged_and_unknown_ones_only_after_their_deadline(fleet):
    slot = fleet.slot()
    acknowledged = []
    deadline = fleet.clock() + timedelta(minutes=2)
    for instance_id in (slot.instance_id, "i-unknown"):
        record = acknowledged.append
        fleet.runtime.notices.append(
            Interruption(
                instance_id, deadline, acknowledge=lambda key=instance_id, record=record: record(key)
            )
        )
    fleet.reconcile()
    slot.refresh_from_db()
    assert slot.interruption_deadline == deadline
    assert acknowledged == [slot.instance_id]
    fleet.clock.advance(minutes=2)
    fleet.reconcile()
    assert acknowledged[1:] == [slot.instance_id, "i-unknown"]


def test_only_one_reconciler_per_pool_runs_at_a_time(fleet):
    slot = fleet.slot(S.BOOTING)
    with lease(f"reconcile:{fleet.pool.pk}", length=timedelta(minutes=2)):
        assert reconcile_pool(fleet.pool, fleet.runtime, fleet.clock) is None
    assert state_of(slot) == S.BOOTING


def test_listed_workers_are_not_terminated(fleet, as_operator):
    slot = fleet.slot()
    fleet.runtime.add("i-listed", launched_at=None)
    type(fleet.runtime).launches = False
    try:
        terminate_slot(slot=slot, reason="maintenance", actor=as_operator, now=fleet.clock())
        fleet.reconcile()
    finally:
        type(fleet.runtime).launches = True
    assert state_of(slot) == S.EMPTY
    assert fleet.runtime.count("terminate") == 0


def test_probes_run_after_all_other_steps(fleet):
    """Every step without a probe is done before the first probe starts."""
    fleet.slot(S.BINDING), fleet.slot(S.BINDING)
    terminating, booting = fleet.slot(S.TERMINATING), fleet.slot(S.BOOTING)
    fleet.runtime.add("i-orphan", token="forgotten")
    fleet.clock.advance(minutes=11)
    fleet.runtime.calls.clear()
    fleet.reconcile()
    calls = [call for call, _ in fleet.runtime.calls]
    assert calls.index("probe") > max(place for place, call in enumerate(calls) if call == "terminate")
    assert (calls.count("probe"), calls.count("terminate")) == (2, 2)
    assert (state_of(terminating), state_of(booting)) == (S.ERROR, S.BINDING)
