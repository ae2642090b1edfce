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
def simulation(now):
    """`simulation(setting=…)`: a runtime of the pool cml-eu; `simulation.now` is its time."""

    class Simulation:
        def __init__(self):
            self.now = now

        def __call__(self, pool="cml-eu", **settings):
            runtime = SimulatedRuntime(pool, settings)
            runtime.clock = lambda: self.now
            return runtime

        def advance(self, seconds):
            self.now += timedelta(seconds=seconds)

    return Simulation()


def launch_request(token="token-1", offering="sim-large", market=Market.ON_DEMAND, slot_id="slot-1"):
    return LaunchRequest(
        token=token, slot_id=slot_id, slot_name="cml-eu-01", offering=Offering(offering, market)
    )


def test_a_launch_returns_an_instance_with_slot_and_token(simulation):
    runtime = simulation()
    instance = runtime.launch(launch_request())
    assert (instance.state, instance.slot_id, instance.token) == (
        InstanceState.PENDING,
        "slot-1",
        "token-1",
    )
    assert instance.endpoint == f"https://{instance.id}.sim"
    assert instance.launched_at == simulation.now
    assert list(runtime.describe()) == [instance]


def test_the_same_token_starts_one_instance(simulation):
    first = simulation().launch(launch_request())
    simulation.advance(10)
    again = simulation().launch(launch_request(slot_id="slot-2"))
    assert (again.id, again.slot_id, again.launched_at) == (first.id, "slot-1", first.launched_at)
    assert SimulatedInstance.objects.count() == 1


def test_another_token_starts_another_instance(simulation):
    assert simulation().launch(launch_request("a")).id != simulation().launch(launch_request("b")).id


def test_a_pool_does_not_see_instances_of_another_pool(simulation):
    instance = simulation("cml-eu").launch(launch_request())
    other = simulation("cml-us")
    other.terminate(instance.id)
    assert list(other.describe()) == []
    assert len(list(simulation("cml-eu").describe())) == 1


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
def test_an_instance_starts_and_boots_after_its_delays(simulation, seconds, state, ready):
    runtime = simulation()
    runtime.launch(launch_request())
    simulation.advance(seconds)
    (instance,) = runtime.describe()
    health = runtime.probe(instance)
    assert (instance.state, health.ready, bool(health.reason)) == (state, ready, not ready)


def test_a_worker_is_not_ready_before_its_instance_runs(simulation):
    runtime = simulation(launch_seconds=60, boot_seconds=1)
    instance = runtime.launch(launch_request())
    simulation.advance(59)
    assert not runtime.probe(instance).ready
    simulation.advance(1)
    assert runtime.probe(instance).ready


def test_probing_needs_no_query(simulation, django_assert_num_queries):
    instance = simulation().launch(launch_request())
    with django_assert_num_queries(0):
        simulation().probe(instance)


def test_a_terminated_instance_is_not_started_again(simulation):
    runtime = simulation()
    instance = runtime.launch(launch_request())
    runtime.terminate(instance.id)
    runtime.terminate(instance.id)
    runtime.terminate("sim-never-was")
    assert list(runtime.describe()) == []
    again = runtime.launch(launch_request())
    assert (again.id, again.state) == (instance.id, InstanceState.GONE)
    assert not runtime.probe(again).ready


def test_rows_of_ended_instances_are_removed_after_a_day(simulation):
    runtime = simulation()
    old, new = runtime.launch(launch_request("old")), runtime.launch(launch_request("new"))
    runtime.terminate(old.id)
    simulation.advance(86_401)
    runtime.terminate(new.id)
    assert list(SimulatedInstance.objects.values_list("token", flat=True)) == ["new"]


def test_the_default_is_one_on_demand_offering(simulation):
    assert [(each.name, each.market) for each in simulation().offerings()] == [
        ("sim-large", Market.ON_DEMAND)
    ]


def test_the_spot_offering_comes_first(simulation):
    assert [(each.name, each.market) for each in simulation(spot=True).offerings()] == [
        ("sim-large-spot", Market.SPOT),
        ("sim-large", Market.ON_DEMAND),
    ]


def test_a_spot_instance_shows_its_market(simulation):
    simulation().launch(launch_request(market=Market.SPOT))
    assert next(iter(simulation().describe())).market is Market.SPOT


def test_an_offering_can_be_refused(simulation):
    runtime = simulation(spot=True, refuse_offerings=["sim-large-spot"])
    with pytest.raises(CapacityRefused, match="no capacity for sim-large-spot"):
        runtime.launch(launch_request(offering="sim-large-spot"))
    assert runtime.launch(launch_request(offering="sim-large"))


@pytest.mark.parametrize(
    ("setting", "error"), [("refuse_percent", CapacityRefused), ("throttle_percent", Throttled)]
)
def test_a_configured_percentage_of_launches_fails_reproducibly(simulation, setting, error):
    def outcome(percent, token):
        try:
            simulation(**{setting: percent}).launch(launch_request(token))
        except error:
            return False
        return True

    tokens = [f"token-{n}" for n in range(100)]
    outcomes = [outcome(30, token) for token in tokens]
    assert outcomes == [outcome(30, token) for token in tokens]
    assert 55 <= sum(outcomes) <= 85
    assert not any(outcome(100, token) for token in tokens)
    assert all(outcome(0, token) for token in tokens)


def test_a_refused_launch_starts_nothing(simulation):
    with pytest.raises(CapacityRefused):
        simulation(refuse_percent=100).launch(launch_request())
    assert not SimulatedInstance.objects.exists()


def test_a_broken_runtime_raises_a_configuration_error(simulation):
    instance = simulation().launch(launch_request())
    broken = simulation(broken=True)
    with pytest.raises(Misconfigured, match="broken"):
        broken.launch(launch_request("token-2"))
    assert [each.id for each in broken.describe()] == [instance.id]


def test_a_slow_call_sleeps_for_its_configured_time(simulation):
    runtime, slept = simulation(call_seconds=7), []
    runtime.sleep = slept.append
    runtime.launch(launch_request())
    assert slept == [7]


def test_a_vanished_instance_does_not_return(simulation):
    simulation().launch(launch_request())
    simulation.advance(30)
    assert len(list(simulation(vanish_after_seconds=60).describe())) == 1
    simulation.advance(30)
    assert list(simulation(vanish_after_seconds=60).describe()) == []
    assert list(simulation().describe()) == []


def test_an_interruption_is_returned_until_it_is_acknowledged(simulation):
    runtime = simulation(interrupt_after_seconds=60)
    instance = runtime.launch(launch_request())
    assert list(runtime.interruptions()) == []
    simulation.advance(60)
    (notice,) = runtime.interruptions()
    assert (notice.instance_id, notice.deadline) == (instance.id, simulation.now + NOTICE)
    simulation.advance(5)
    (again,) = runtime.interruptions()
    assert again == notice
    again.acknowledge()
    assert list(runtime.interruptions()) == []


def test_an_interrupted_instance_terminates_at_its_deadline(simulation):
    runtime = simulation()
    instance = runtime.launch(launch_request())
    runtime.interrupt(instance.id)
    simulation.advance(119)
    assert len(list(runtime.describe())) == 1
    simulation.advance(1)
    assert list(runtime.describe()) == []
    assert list(runtime.interruptions()) == []


def test_describing_unchanged_instances_needs_one_query(simulation, django_assert_num_queries):
    runtime = simulation(vanish_after_seconds=3600, interrupt_after_seconds=3600)
    for number in range(20):
        runtime.launch(launch_request(f"token-{number}"))
    with django_assert_num_queries(1):
        assert len(list(runtime.describe())) == 20
