"""A pool of workers that exist already: two launches never end up with the same one."""

from __future__ import annotations

from functools import partial

import pytest

from scheduling import launching
from scheduling.capacity import resources_of
from scheduling.launching import perform_launch
from scheduling.models import AttemptOutcome, LaunchAttempt, Phase, Slot, SlotState
from scheduling.runtimes.base import Health
from scheduling.runtimes.static import StaticRuntime
from tests.scheduling.fleet import Fleet, phases

S = SlotState


@pytest.fixture
def static(tuned) -> Fleet:
    """Three listed workers that answer at once."""
    names = ("a", "b", "c")
    listed = [{"name": name, "endpoint": f"https://{name}.example.org"} for name in names]
    fleet = tuned(runtime="static", runtime_settings={"workers": listed}, max_slots=3)
    fleet.runtime = StaticRuntime("cml-eu", fleet.pool.runtime_settings)
    fleet.runtime.probe = lambda _: Health(True, version="2.9.1")
    return fleet


@pytest.fixture
def shifted(static) -> Fleet:
    """The third slot has the first worker, so that both of the others choose the second."""
    static.fresh()
    size = {**vars(resources_of(static.pool)), "max_leases": static.pool.max_leases}
    Slot.objects.create(pool=static.pool, number=3, state=S.READY, instance_id="a", **size)
    return static


def test_two_launches_that_choose_the_same_worker_give_it_to_one_and_the_other_gets_another(
    shifted, monkeypatch
):
    """The second chooses before the first has written down which it took."""
    claims = [shifted.reservation(16, ttl=9999) for _ in range(3)]
    first, second = shifted.tick().attempts
    real = launching._request

    def choose_early(attempt, offering):
        request = real(attempt, offering)
        monkeypatch.setattr(launching, "_request", real)
        perform_launch(second, shifted.runtime, shifted.clock)
        return request

    monkeypatch.setattr(launching, "_request", choose_early)
    perform_launch(first, shifted.runtime, shifted.clock)
    outcomes = dict(LaunchAttempt.objects.values_list("pk", "outcome"))
    assert outcomes == {first: AttemptOutcome.REFUSED, second: AttemptOutcome.LAUNCHED}
    assert "b was given to another slot" in LaunchAttempt.objects.get(pk=first).error
    assert shifted.fresh().backoff_until is None
    for _ in range(4):
        shifted.round(5)
    assert phases(claims) == [Phase.READY] * 3
    assert sorted(slot.instance_id for slot in shifted.slots(S.READY)) == ["a", "b", "c"]


def test_all_workers_are_used_and_none_twice(static):
    claims = [static.reservation(16, ttl=9999) for _ in range(3)]
    for _ in range(4):
        static.round(5)
    assert phases(claims) == [Phase.READY] * 3
    assert sorted(slot.instance_id for slot in static.slots(S.READY)) == ["a", "b", "c"]


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_launches_at_the_same_moment_share_the_workers_out(shifted, at_once):
    for _ in range(3):
        shifted.reservation(16, ttl=9999)
    for _ in range(3):
        attempts = shifted.tick().attempts
        work = [partial(perform_launch, key, shifted.runtime, shifted.clock) for key in attempts]
        assert not work or at_once(*work) == [None] * len(work)
    assert sorted(slot.instance_id for slot in shifted.slots(S.BOOTING)) == ["b", "c"]
