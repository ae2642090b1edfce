"""The simulated runtime: state in the database, controllable time and faults."""

from datetime import timedelta

import pytest

from scheduling.capacity.runtimes.base import (
    CapacityRefused,
    InstanceState,
    LaunchRequest,
    Market,
    Misconfigured,
    Offering,
    Throttled,
)
from scheduling.capacity.runtimes.simulated import NOTICE, SimulatedRuntime
from scheduling.models import SimulatedInstance

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(now):
    """`world(setting=…)`: a runtime of the pool cml-eu; `world.now` is its time."""

    class World:
        def __init__(self):
            self.now = now

        def __call__(self, pool="cml-eu", **settings):
            runtime = SimulatedRuntime(pool, settings)
            runtime.clock = lambda: self.now
            return runtime

        def wait(self, seconds):
            self.now += timedelta(seconds=seconds)

    return World()


def ask(token="token-1", offering="sim-large", market=Market.ON_DEMAND, slot_id="slot-1"):
    return LaunchRequest(
        token=token, slot_id=slot_id, slot_name="cml-eu-01", offering=Offering(offering, market)
    )


def test_a_launch_gives_an_instance_with_our_tags(world):
    runtime = world()
    instance = runtime.launch(ask())
    assert (instance.state, instance.slot_id, instance.token) == (
        InstanceState.PENDING,
        "slot-1",
        "token-1",
    )
    assert instance.endpoint == f"https://{instance.id}.sim"
    assert instance.launched_at == world.now
    assert list(runtime.describe()) == [instance]


def test_the_same_token_starts_one_instance(world):
    first = world().launch(ask())
    world.wait(10)
    again = world().launch(ask(slot_id="slot-2"))
    assert (again.id, again.slot_id, again.launched_at) == (first.id, "slot-1", first.launched_at)
    assert SimulatedInstance.objects.count() == 1


def test_another_token_starts_another_instance(world):
    assert world().launch(ask("a")).id != world().launch(ask("b")).id


def test_pools_do_not_see_each_other(world):
    instance = world("cml-eu").launch(ask())
    other = world("cml-us")
    other.terminate(instance.id)
    assert list(other.describe()) == []
    assert len(list(world("cml-eu").describe())) == 1


@pytest.mark.parametrize(
    ("seconds", "state", "ready"),
    [
        (0, InstanceState.PENDING, False),
        (2.9, InstanceState.PENDING, False),
        (3, InstanceState.RUNNING, False),
        (4.9, InstanceState.RUNNING, False),
        (5, InstanceState.RUNNING, True),
        (86_400, InstanceState.RUNNING, True),
    ],
)
def test_it_starts_and_boots_in_time(world, seconds, state, ready):
    runtime = world()
    runtime.launch(ask())
    world.wait(seconds)
    (instance,) = runtime.describe()
    health = runtime.probe(instance)
    assert (instance.state, health.ready, bool(health.reason)) == (state, ready, not ready)


def test_a_worker_is_not_ready_before_its_instance_runs(world):
    runtime = world(launch_seconds=60, boot_seconds=1)
    instance = runtime.launch(ask())
    world.wait(59)
    assert not runtime.probe(instance).ready
    world.wait(1)
    assert runtime.probe(instance).ready


def test_probing_needs_no_query(world, django_assert_num_queries):
    instance = world().launch(ask())
    with django_assert_num_queries(0):
        world().probe(instance)


def test_a_terminated_instance_is_gone_and_stays_gone(world):
    runtime = world()
    instance = runtime.launch(ask())
    runtime.terminate(instance.id)
    runtime.terminate(instance.id)
    runtime.terminate("sim-never-was")
    assert list(runtime.describe()) == []
    again = runtime.launch(ask())
    assert (again.id, again.state) == (instance.id, InstanceState.GONE)
    assert not runtime.probe(again).ready


def test_rows_of_ended_instances_are_removed_after_a_day(world):
    runtime = world()
    old, new = runtime.launch(ask("old")), runtime.launch(ask("new"))
    runtime.terminate(old.id)
    world.wait(86_401)
    runtime.terminate(new.id)
    assert list(SimulatedInstance.objects.values_list("token", flat=True)) == ["new"]


def test_by_default_one_kind_is_on_offer(world):
    assert [(each.name, each.market) for each in world().offerings()] == [("sim-large", Market.ON_DEMAND)]


def test_spot_comes_first_when_there_is_spot(world):
    assert [(each.name, each.market) for each in world(spot=True).offerings()] == [
        ("sim-large-spot", Market.SPOT),
        ("sim-large", Market.ON_DEMAND),
    ]


def test_a_spot_instance_is_marked(world):
    world().launch(ask(market=Market.SPOT))
    assert next(iter(world().describe())).market is Market.SPOT


def test_an_offering_can_be_refused(world):
    runtime = world(spot=True, refuse_offerings=["sim-large-spot"])
    with pytest.raises(CapacityRefused, match="no capacity for sim-large-spot"):
        runtime.launch(ask(offering="sim-large-spot"))
    assert runtime.launch(ask(offering="sim-large"))


@pytest.mark.parametrize(
    ("setting", "error"), [("refuse_percent", CapacityRefused), ("throttle_percent", Throttled)]
)
def test_a_share_of_launches_fails_and_always_the_same(world, setting, error):
    def outcome(percent, token):
        try:
            world(**{setting: percent}).launch(ask(token))
        except error:
            return False
        return True

    tokens = [f"token-{n}" for n in range(100)]
    some = [outcome(30, token) for token in tokens]
    assert some == [outcome(30, token) for token in tokens]
    assert 55 <= sum(some) <= 85
    assert not any(outcome(100, token) for token in tokens)
    assert all(outcome(0, token) for token in tokens)


def test_a_refused_launch_starts_nothing(world):
    with pytest.raises(CapacityRefused):
        world(refuse_percent=100).launch(ask())
    assert not SimulatedInstance.objects.exists()


def test_a_broken_runtime_is_a_matter_of_configuration(world):
    instance = world().launch(ask())
    broken = world(broken=True)
    with pytest.raises(Misconfigured, match="broken"):
        broken.launch(ask("token-2"))
    assert [each.id for each in broken.describe()] == [instance.id]


def test_a_slow_call_takes_its_time(world):
    runtime, slept = world(call_seconds=7), []
    runtime.sleep = slept.append
    runtime.launch(ask())
    assert slept == [7]


def test_an_instance_can_vanish_and_does_not_come_back(world):
    world().launch(ask())
    world.wait(30)
    assert len(list(world(vanish_after_seconds=60).describe())) == 1
    world.wait(30)
    assert list(world(vanish_after_seconds=60).describe()) == []
    assert list(world().describe()) == []


def test_an_interruption_is_returned_until_it_is_acknowledged(world):
    runtime = world(interrupt_after_seconds=60)
    instance = runtime.launch(ask())
    assert list(runtime.interruptions()) == []
    world.wait(60)
    (notice,) = runtime.interruptions()
    assert (notice.instance_id, notice.deadline) == (instance.id, world.now + NOTICE)
    world.wait(5)
    (again,) = runtime.interruptions()
    assert again == notice
    again.acknowledge()
    assert list(runtime.interruptions()) == []


def test_an_interrupted_instance_terminates_at_its_deadline(world):
    runtime = world()
    instance = runtime.launch(ask())
    runtime.interrupt(instance.id)
    world.wait(119)
    assert len(list(runtime.describe())) == 1
    world.wait(1)
    assert list(runtime.describe()) == []
    assert list(runtime.interruptions()) == []


def test_a_quiet_world_is_read_with_one_query(world, django_assert_num_queries):
    runtime = world(vanish_after_seconds=3600, interrupt_after_seconds=3600)
    for number in range(20):
        runtime.launch(ask(f"token-{number}"))
    with django_assert_num_queries(1):
        assert len(list(runtime.describe())) == 20
