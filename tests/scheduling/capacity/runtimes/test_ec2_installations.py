"""Two installations with a pool of the same name in one account."""

from datetime import timedelta

import pytest
from django.utils import timezone

from lcm.domain.actors import SYSTEM
from scheduling.capacity.reconciler import reconcile_pool
from scheduling.capacity.runtimes.base import ORPHAN_GRACE
from scheduling.capacity.runtimes.ec2 import Ec2Runtime
from scheduling.models import Slot, SlotState
from scheduling.services.pools import create_pool
from tests.scheduling.capacity.runtimes.conftest import request_for


@pytest.fixture
def pool(db, ec2_settings, unique_name):
    return create_pool(name=unique_name, runtime="ec2", runtime_settings=ec2_settings, actor=SYSTEM)


@pytest.fixture
def after_grace_period():
    """A time at which every instance without a slot is an orphan."""
    return lambda: timezone.now() + ORPHAN_GRACE + timedelta(minutes=1)


def running_instances(ec2, pool):
    """The running instances of pools of this name, of any installation."""
    filters = [
        {"Name": "tag:lcm:pool", "Values": [pool.name]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    found = ec2.describe_instances(Filters=filters)["Reservations"]
    return {raw["InstanceId"] for each in found for raw in each["Instances"]}


def test_only_the_owning_installation_terminates_an_orphan(
    runtime, pool, ec2, ec2_settings, after_grace_period, spot_and_on_demand
):
    lost = runtime.launch(request_for(spot_and_on_demand[1], "lost"))
    production = Ec2Runtime(pool.name, ec2_settings)
    production.installation = "production"
    foreign = production.launch(request_for(spot_and_on_demand[1], "theirs"))
    assert running_instances(ec2, pool) == {lost.id, foreign.id}
    reconcile_pool(pool, runtime, after_grace_period)
    assert running_instances(ec2, pool) == {foreign.id}


def test_an_instance_launched_before_installation_ids_stays_with_its_slot(
    runtime, pool, ec2, after_grace_period, spot_and_on_demand
):
    on_demand = spot_and_on_demand[1]
    known, untracked = (runtime.launch(request_for(on_demand, name)) for name in ("known", "nobodys"))
    ec2.delete_tags(Resources=[known.id, untracked.id], Tags=[{"Key": "lcm:installation"}])
    slot = Slot.objects.create(
        pool=pool, number=1, state=SlotState.READY, instance_id=known.id, last_heartbeat=after_grace_period(),
        max_leases=1, cpu_cores=1, memory_gb=1, storage_gb=1,
    )  # fmt: skip
    for _ in range(2):
        reconcile_pool(pool, runtime, after_grace_period)
    slot.refresh_from_db()
    assert (slot.state, slot.instance_id) == (SlotState.READY, known.id)
    assert {each.id: each.claimed for each in runtime.describe()} == {known.id: True, untracked.id: False}
    assert running_instances(ec2, pool) == {known.id, untracked.id}
