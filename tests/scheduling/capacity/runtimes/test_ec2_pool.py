"""A pool on EC2: launches and the reconciler, by real boto3 against moto's server."""

import pytest
from botocore.awsrequest import AWSResponse
from django.utils import timezone

from lcm.domain.actors import SYSTEM
from scheduling.models import SlotState, SpotPolicy
from scheduling.services.pools import create_pool
from tests.scheduling.capacity.runtimes.conftest import request_for
from tests.scheduling.capacity.runtimes.test_ec2_errors import BODY, RawResponse
from tests.support.fake_runtime import Clock
from tests.support.fleet import Fleet

pytestmark = pytest.mark.django_db


@pytest.fixture
def fleet(runtime, ec2_settings) -> Fleet:
    """A pool of spot slots with on-demand fallback."""
    pool = create_pool(
        name=runtime.pool,
        actor=SYSTEM,
        runtime="ec2",
        runtime_settings=ec2_settings,
        spot_policy=SpotPolicy.FALLBACK,
    )
    return Fleet(pool, Clock(timezone.now()), runtime)


@pytest.fixture
def refuse_markets(boto_hook):
    """`refuse_markets(code, *markets)`: let EC2 refuse these markets; return the requested markets."""

    def refuse(code, *markets):
        requested_markets = []

        def respond(request, **_):
            requested_markets.append("spot" if "InstanceMarketOptions" in str(request.body) else "on-demand")
            if requested_markets[-1] in markets:
                return AWSResponse(request.url, 400, {}, RawResponse(BODY.format(code=code).encode()))
            return None

        boto_hook("before-send.ec2.RunInstances", respond)
        return requested_markets

    return refuse


def instance_states(ec2, *ids):
    found = ec2.describe_instances(InstanceIds=list(ids))["Reservations"]
    by_id = {each["InstanceId"]: each["State"]["Name"] for row in found for each in row["Instances"]}
    return [by_id[key] for key in ids]


def test_an_exhausted_spot_quota_falls_back_to_on_demand(fleet, refuse_markets):
    requested_markets = refuse_markets("MaxSpotInstanceCountExceeded", "spot")
    slot = fleet.slot(SlotState.LAUNCHING)
    fleet.launch()
    slot.refresh_from_db()
    assert requested_markets == ["spot", "on-demand"]
    assert (slot.state, slot.offering, slot.is_spot) == (
        SlotState.BOOTING, "m5.large/eu-central-1a", False,
    )  # fmt: skip
    assert (fleet.reload_pool().backoff_until, fleet.pool.failures) == (None, 0)


def test_an_exhausted_quota_of_both_markets_starts_a_back_off(fleet, refuse_markets):
    requested_markets = refuse_markets("VcpuLimitExceeded", "spot", "on-demand")
    slot = fleet.slot(SlotState.LAUNCHING)
    fleet.launch()
    slot.refresh_from_db()
    assert requested_markets == ["spot", "on-demand"]
    assert (slot.state, fleet.reload_pool().failures) == (SlotState.ERROR, 1)


def test_non_preemptible_work_requests_on_demand_only(fleet, refuse_markets):
    requested_markets = refuse_markets("", "no-market")
    fleet.reservation()
    fleet.tick()
    fleet.launch()
    assert requested_markets == ["on-demand"]


def test_an_orphan_is_terminated_and_an_untagged_instance_is_not(fleet, runtime, ec2, boto_hook):
    """The account also has the slot's own instance and an instance tagged for another pool."""
    call_targets = []
    for call in ("TerminateInstances", "StopInstances"):
        boto_hook(
            f"before-parameter-build.ec2.{call}",
            lambda params, **_: call_targets.extend(params["InstanceIds"]),
        )
    orphan = runtime.launch(request_for(list(runtime.offerings())[1], "forgotten")).id
    template = {"LaunchTemplate": {"LaunchTemplateName": "cml"}, "MinCount": 1, "MaxCount": 1}
    untagged = ec2.run_instances(**template)["Instances"][0]["InstanceId"]
    tags = [{"Key": "lcm:pool", "Value": f"{runtime.pool}-2"}]
    specification = [{"ResourceType": "instance", "Tags": tags}]
    of_other_pool = ec2.run_instances(**template, TagSpecifications=specification)["Instances"][0][
        "InstanceId"
    ]
    fleet.slot(SlotState.LAUNCHING)
    fleet.launch()
    of_slot = fleet.slots()[0].instance_id
    fleet.reconcile()
    assert instance_states(ec2, orphan, untagged, of_other_pool, of_slot) == ["running"] * 4
    fleet.clock.advance(hours=1)
    for _ in range(3):
        assert fleet.reconcile().errors == []
    assert instance_states(ec2, orphan, untagged, of_other_pool)[0] in ("shutting-down", "terminated")
    assert instance_states(ec2, untagged, of_other_pool) == ["running"] * 2
    assert set(call_targets) <= {orphan, of_slot}
    assert orphan in call_targets
