"""Leases: one holder at a time, by the clock of the database."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from scheduling import tasks
from scheduling.capacity import launcher, reconciler, tick
from scheduling.coordination import coordinator, leases
from scheduling.coordination.leases import HeldLease, lease
from scheduling.models import ProcessLease
from scheduling.periodic import RESUME_INTERVAL

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def advance_process_time(monkeypatch):
    """`advance_process_time(seconds)`: advance the clock of this process, but not of the database."""
    seconds = [0.0]
    monkeypatch.setattr(leases, "monotonic", lambda: seconds[0])

    def advance(more: float) -> None:
        seconds[0] += more

    return advance


def expire() -> None:
    ProcessLease.objects.update(expires_at=timezone.now() - MINUTE)


def test_only_one_of_two_holders_gets_the_lease():
    with lease("tick", length=MINUTE) as first, lease("tick", length=MINUTE) as second:
        assert first is not None
        assert second is None
        assert first.renew()


def test_leases_with_different_names_are_independent():
    with lease("one", length=MINUTE) as first, lease("two", length=MINUTE) as second:
        assert first is not None
        assert second is not None


def test_a_lease_is_released_at_the_end_of_the_block_even_after_an_error():
    with pytest.raises(ZeroDivisionError), lease("tick", length=MINUTE):
        raise ZeroDivisionError
    assert not ProcessLease.objects.exists()


def test_the_error_of_the_block_is_raised_if_the_lease_cannot_be_released(monkeypatch, caplog):
    def fail(hold):
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(HeldLease, "release", fail)
    with pytest.raises(ZeroDivisionError), lease("tick", length=MINUTE):
        raise ZeroDivisionError
    assert "lease_not_released" in caplog.text


@pytest.mark.parametrize(("seconds", "is_obtained"), [(-30, False), (30, True), (600, True)])
def test_the_lease_of_a_dead_holder_expires(seconds, is_obtained):
    expired = timezone.now() - timedelta(seconds=seconds)
    ProcessLease.objects.create(name="tick", holder="dead", expires_at=expired)
    with lease("tick", length=MINUTE) as hold:
        assert (hold is not None) == is_obtained


def test_a_process_whose_clock_is_ahead_gets_no_lease(time_machine):
    with lease("tick", length=MINUTE):
        time_machine.move_to(timezone.now() + timedelta(hours=1))
        with lease("tick", length=MINUTE) as second:
            assert second is None


def test_a_renewal_extends_the_lease():
    with lease("tick", length=MINUTE) as first:
        expire()
        assert first.renew()
        with lease("tick", length=MINUTE) as second:
            assert second is None


def test_a_renewal_after_another_took_the_lease_fails_and_leaves_the_new_holder_alone():
    with lease("tick", length=MINUTE) as first:
        expire()
        with lease("tick", length=MINUTE) as second:
            assert not first.renew()
            assert second.renew()
            first.release()
            assert ProcessLease.objects.get().holder == second.holder


@pytest.mark.parametrize(("seconds", "queries"), [(0, 0), (29, 0), (30, 1), (59, 1), (120, 1)])
def test_a_recently_renewed_lease_is_checked_without_a_query(
    advance_process_time, django_assert_num_queries, seconds, queries
):
    with lease("tick", length=MINUTE) as hold:
        advance_process_time(seconds)
        with django_assert_num_queries(queries):
            assert hold.is_held()
        with django_assert_num_queries(0):
            assert hold.is_held()


def test_a_process_that_was_frozen_notices_that_it_lost_the_lease(advance_process_time):
    with lease("tick", length=MINUTE) as first:
        advance_process_time(61)
        expire()
        with lease("tick", length=MINUTE):
            assert not first.is_held()


def test_the_renewal_thread_retries_sooner_after_an_error_and_ends_when_the_lease_is_lost():
    results = iter([True, OperationalError("gone"), True, False])
    waits = []

    class Ended:
        def wait(self, seconds):
            waits.append(seconds)
            return False

    class Renewed(HeldLease):
        def renew(self):
            result = next(results)
            if isinstance(result, Exception):
                raise result
            return result

    leases._renew_until(Renewed("tick", timedelta(seconds=12)), Ended())
    assert waits == [4, 4, 1, 4]


# Length of each lease, and the seconds within which another process continues after a death.
LEASE_LENGTHS = [(tick.LEASE, 5), (coordinator.LEASE, 15), (reconciler.LEASE, 15), (launcher.CALL_LEASE, 15)]


@pytest.mark.parametrize(("length", "seconds"), LEASE_LENGTHS)
def test_leases_are_short_enough_for_the_takeover_time(length, seconds):
    assert length + RESUME_INTERVAL <= timedelta(seconds=seconds * 0.8)


KEY = "6f3b1f0e-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("name", "task"),
    [
        (f"tick:{KEY}", tasks.tick_pool),
        (f"reconcile:{KEY}", tasks.reconcile),
        (f"launch:{KEY}", tasks.launch_slot),
        ("observer:expire-pending", tasks.run_handler),
        ("observer:usage-record", tasks.run_observer),
        ("controller:cml-eu", None),
    ],
)
def test_the_work_of_a_dead_holder_is_enqueued_once(name, task, monkeypatch):
    enqueued = []
    for each in (tasks.tick_pool, tasks.reconcile, tasks.launch_slot, tasks.run_handler, tasks.run_observer):
        monkeypatch.setattr(each, "apply_async", lambda args, each=each, **_: enqueued.append((each, *args)))
    ProcessLease.objects.create(name=name, holder="dead", expires_at=timezone.now() - MINUTE)
    ProcessLease.objects.create(name="tick:alive", holder="alive", expires_at=timezone.now() + MINUTE)
    tasks.resume_interrupted()
    tasks.resume_interrupted()
    assert enqueued == ([] if task is None else [(task, name.partition(":")[2])])
    assert ProcessLease.objects.filter(name="tick:alive").exists()


def test_without_a_broker_the_expired_lease_stays_for_the_next_run(monkeypatch):
    def refuse(*arguments, **fields):
        raise ConnectionRefusedError

    monkeypatch.setattr(tasks.tick_pool, "apply_async", refuse)
    ProcessLease.objects.create(name=f"tick:{KEY}", holder="dead", expires_at=timezone.now() - MINUTE)
    with pytest.raises(ConnectionRefusedError):
        tasks.resume_interrupted()
    assert ProcessLease.objects.exists()
