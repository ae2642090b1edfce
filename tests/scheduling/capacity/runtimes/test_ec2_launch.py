"""EC2: launch, describe and terminate instances, by real boto3 against moto's server."""

import base64
from dataclasses import replace

import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from scheduling.capacity.runtimes.base import (
    Category,
    InstanceState,
    Market,
    Misconfigured,
    Offering,
    ResponseLost,
    RuntimeFailure,
)
from scheduling.capacity.runtimes.ec2 import Ec2Runtime
from tests.scheduling.capacity.runtimes.conftest import request_for


@pytest.fixture
def launch_calls(boto_hook):
    """The parameters of all launch calls."""
    calls = []
    boto_hook("before-parameter-build.ec2.RunInstances", lambda params, **_: calls.append(dict(params)))
    return calls


def describe_raw(ec2, instance_id):
    return ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]


def test_a_launch_is_found_by_its_tags(runtime, ec2, spot_and_on_demand):
    launched = runtime.launch(request_for(spot_and_on_demand[1]))
    (found,) = runtime.describe()
    assert (found.id, found.slot_id, found.token) == (launched.id, "slot-1", "token-1")
    assert found.state is InstanceState.RUNNING
    assert found.endpoint == f"https://{describe_raw(ec2, found.id)['PrivateIpAddress']}"
    assert found.launched_at is not None
    assert found.launched_at.tzinfo is not None


def test_the_launch_call_sets_all_tags(ec2_settings, ec2, launch_calls, unique_name, spot_and_on_demand):
    runtime = Ec2Runtime(unique_name, {**ec2_settings, "tags": {"cost-centre": "labs"}})
    launched = runtime.launch(request_for(spot_and_on_demand[1]))
    tags = {tag["Key"]: tag["Value"] for tag in describe_raw(ec2, launched.id)["Tags"]}
    assert {key: value for key, value in tags.items() if not key.startswith("aws:")} == {
        "Name": "cml-eu-01",
        "cost-centre": "labs",
        "lcm:installation": "lcm-here",
        "lcm:pool": unique_name,
        "lcm:slot": "slot-1",
        "lcm:token": "token-1",
    }
    assert len(launch_calls) == 1
    assert (launch_calls[0]["MinCount"], launch_calls[0]["MaxCount"]) == (1, 1)


def test_spot_and_on_demand_are_distinguished(runtime, ec2, spot_and_on_demand):
    spot, on_demand = (runtime.launch(request_for(each, each.name)) for each in spot_and_on_demand)
    assert describe_raw(ec2, spot.id)["InstanceLifecycle"] == "spot"
    assert "InstanceLifecycle" not in describe_raw(ec2, on_demand.id)
    assert {each.id: each.market for each in runtime.describe()} == {
        spot.id: Market.SPOT,
        on_demand.id: Market.ON_DEMAND,
    }


def test_the_offering_sets_instance_type_and_location(runtime, ec2, launch_calls):
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    runtime.launch(request_for(Offering("a", Market.ON_DEMAND, "c5.large", "eu-central-1b"), "a"))
    runtime.launch(request_for(Offering("b", Market.ON_DEMAND, "m5.large", subnet), "b"))
    runtime.launch(request_for(Offering("c", Market.ON_DEMAND, "m5.large"), "c"))
    by_zone, by_subnet, anywhere = launch_calls
    assert by_zone["InstanceType"] == "c5.large"
    assert by_zone["Placement"] == {"AvailabilityZone": "eu-central-1b"}
    assert "SubnetId" not in by_zone
    assert (by_subnet["SubnetId"], "Placement" in by_subnet) == (subnet, False)
    assert not {"SubnetId", "Placement"} & set(anywhere)


def test_offerings_are_named_by_type_location_and_market(runtime, ec2_settings):
    assert [each.name for each in runtime.offerings()] == [
        "m5.large/eu-central-1a/spot",
        "m5.large/eu-central-1a",
    ]
    listed = [{"instance_type": "m5.large", "subnet_id": "subnet-0a1b"}]
    (offering,) = Ec2Runtime("p", {**ec2_settings, "offerings": listed}).offerings()
    assert offering == Offering("m5.large/subnet-0a1b", Market.ON_DEMAND, "m5.large", "subnet-0a1b")


def test_the_client_token_depends_on_attempt_and_offering(runtime, launch_calls, spot_and_on_demand):
    spot, on_demand = spot_and_on_demand
    for offering, token in [(spot, "a"), (spot, "a"), (on_demand, "a"), (spot, "b")]:
        runtime.launch(request_for(offering, token))
    first, again, other_offering, other_attempt = (call["ClientToken"] for call in launch_calls)
    assert first == again
    assert len({first, other_offering, other_attempt}) == 3
    assert all(len(call["ClientToken"]) <= 64 for call in launch_calls)


@pytest.mark.parametrize("by_id", [True, False])
def test_the_launch_template_is_given_by_id_or_name(
    ec2, ec2_settings, launch_calls, by_id, spot_and_on_demand
):
    template = ec2.describe_launch_templates()["LaunchTemplates"][0]
    name = template["LaunchTemplateId"] if by_id else "cml"
    settings = {**ec2_settings, "launch_template": name, "launch_template_version": "$Latest"}
    Ec2Runtime("cml-eu", settings).launch(request_for(spot_and_on_demand[1]))
    key = "LaunchTemplateId" if by_id else "LaunchTemplateName"
    assert launch_calls[0]["LaunchTemplate"] == {key: name, "Version": "$Latest"}


def test_the_instance_gets_its_user_data(runtime, ec2, spot_and_on_demand):
    text = "#cloud-config\nx: “é”\n"
    launched = runtime.launch(request_for(spot_and_on_demand[1], user_data=text))
    response = ec2.describe_instance_attribute(InstanceId=launched.id, Attribute="userData")
    assert base64.b64decode(response["UserData"]["Value"]).decode() == text


def test_user_data_above_the_limit_of_ec2_is_rejected(runtime, launch_calls, spot_and_on_demand):
    with pytest.raises(Misconfigured, match="at most 16384"):
        runtime.launch(request_for(spot_and_on_demand[1], user_data="é" * 9000))
    assert launch_calls == []


def test_the_endpoint_is_empty_until_its_attributes_are_known(ec2_settings, ec2):
    runtime = Ec2Runtime("p", {**ec2_settings, "endpoint_template": "https://{public_dns}:8443"})
    instance = {"InstanceId": "i-1", "State": {"Name": "pending"}, "PublicDnsName": ""}
    assert runtime._instance(instance).endpoint == ""
    assert runtime._instance({**instance, "PublicDnsName": "w.test"}).endpoint == "https://w.test:8443"


def test_describe_reads_all_pages(runtime, spot_and_on_demand, boto_hook, monkeypatch):
    monkeypatch.setattr(Ec2Runtime, "page_size", 5)
    pages = []
    boto_hook("after-call.ec2.DescribeInstances", lambda parsed, **_: pages.append(parsed))
    launched = {runtime.launch(request_for(spot_and_on_demand[1], f"token-{n}")).id for n in range(12)}
    assert {each.id for each in runtime.describe()} == launched
    assert len(pages) == 3


def test_describe_never_returns_a_partial_list(runtime, spot_and_on_demand, boto_hook, monkeypatch):
    monkeypatch.setattr(Ec2Runtime, "page_size", 5)
    for number in range(6):
        runtime.launch(request_for(spot_and_on_demand[1], f"token-{number}"))
    pages = []

    def fail_second_page(parsed, **_):
        pages.append(parsed)
        if len(pages) == 2:
            raise ReadTimeoutError(endpoint_url="http://ec2")

    boto_hook("after-call.ec2.DescribeInstances", fail_second_page)
    with pytest.raises(RuntimeFailure):
        list(runtime.describe())


def test_describe_returns_only_instances_of_its_pool_and_installation(
    runtime, ec2, ec2_settings, spot_and_on_demand
):
    own = runtime.launch(request_for(spot_and_on_demand[1], "mine"))
    other = Ec2Runtime(f"{runtime.pool}-2", ec2_settings)
    of_other_pool = other.launch(request_for(spot_and_on_demand[1], "theirs"))
    elsewhere = Ec2Runtime(runtime.pool, ec2_settings)
    elsewhere.installation = "lcm-elsewhere"
    of_other_installation = elsewhere.launch(request_for(spot_and_on_demand[1], "elsewhere"))
    ec2.run_instances(LaunchTemplate={"LaunchTemplateName": "cml"}, MinCount=1, MaxCount=1)
    assert [each.id for each in runtime.describe()] == [own.id]
    assert [each.id for each in other.describe()] == [of_other_pool.id]
    assert [each.id for each in elsewhere.describe()] == [of_other_installation.id]


def test_an_instance_without_an_owner_tag_is_listed_until_it_is_claimed(
    runtime, ec2, ec2_settings, spot_and_on_demand
):
    old = runtime.launch(request_for(spot_and_on_demand[1]))
    assert old.claimed
    ec2.delete_tags(Resources=[old.id], Tags=[{"Key": "lcm:installation"}])
    elsewhere = Ec2Runtime(runtime.pool, ec2_settings)
    elsewhere.installation = "lcm-elsewhere"
    for each in (runtime, elsewhere):
        assert [(found.id, found.claimed) for found in each.describe()] == [(old.id, False)]
    runtime.claim([old.id])
    assert [(found.id, found.claimed) for found in runtime.describe()] == [(old.id, True)]
    assert list(elsewhere.describe()) == []


def test_many_instances_are_claimed_in_batches(runtime, spot_and_on_demand, boto_hook, monkeypatch):
    monkeypatch.setattr(Ec2Runtime, "page_size", 5)
    calls = []
    boto_hook("before-parameter-build.ec2.CreateTags", lambda params, **_: calls.append(params["Resources"]))
    ids = [runtime.launch(request_for(spot_and_on_demand[1], f"token-{n}")).id for n in range(7)]
    runtime.claim(ids)
    assert calls == [ids[:5], ids[5:]]


def test_terminate_is_idempotent(runtime, ec2, spot_and_on_demand):
    launched = runtime.launch(request_for(spot_and_on_demand[1]))
    runtime.terminate(launched.id)
    runtime.terminate(launched.id)
    assert describe_raw(ec2, launched.id)["State"]["Name"] == "terminated"
    assert list(runtime.describe()) == []


def test_terminating_a_missing_instance_succeeds(runtime):
    runtime.terminate("i-0123456789abcdef0")


def test_a_stopped_instance_is_still_listed(runtime, ec2, spot_and_on_demand):
    launched = runtime.launch(request_for(spot_and_on_demand[1]))
    ec2.stop_instances(InstanceIds=[launched.id])
    assert [each.state for each in runtime.describe()] == [InstanceState.STOPPED]
    runtime.terminate(launched.id)
    assert list(runtime.describe()) == []


def test_an_instance_of_a_lost_response_is_found_by_its_token(runtime, boto_hook, spot_and_on_demand):
    def lose_response(**_):
        raise ReadTimeoutError(endpoint_url="http://ec2")

    boto_hook("after-call.ec2.RunInstances", lose_response)
    with pytest.raises(ResponseLost, match=r"launch cml-eu-01 as m5\.large/eu-central-1a") as error:
        runtime.launch(request_for(spot_and_on_demand[1], "lost"))
    assert error.value.category is Category.UNKNOWN
    assert [(each.token, each.slot_id) for each in runtime.describe()] == [("lost", "slot-1")]


def test_a_failed_connection_is_a_plain_failure(runtime, boto_hook, spot_and_on_demand):
    def refuse(**_):
        raise EndpointConnectionError(endpoint_url="http://ec2")

    boto_hook("before-send.ec2.RunInstances", refuse)
    with pytest.raises(RuntimeFailure) as error:
        runtime.launch(request_for(spot_and_on_demand[1]))
    assert type(error.value) is RuntimeFailure
    assert list(runtime.describe()) == []


def test_an_unreachable_service_is_a_plain_failure(ec2_settings, spot_and_on_demand):
    runtime = Ec2Runtime("cml-eu", {**ec2_settings, "endpoint_url": "http://127.0.0.1:9"})
    with pytest.raises(RuntimeFailure) as error:
        runtime.launch(request_for(spot_and_on_demand[1]))
    assert type(error.value) is RuntimeFailure


def test_a_missing_subnet_is_a_configuration_error(runtime, spot_and_on_demand):
    missing_subnet = replace(spot_and_on_demand[1], zone="subnet-0123456789abcdef0")
    with pytest.raises(Misconfigured, match=r"InvalidSubnetID\.NotFound"):
        runtime.launch(request_for(missing_subnet))


def test_invalid_parameters_are_a_configuration_error(runtime, spot_and_on_demand):
    invalid = replace(spot_and_on_demand[1], instance_type=None)
    with pytest.raises(Misconfigured, match="InstanceType"):
        runtime.launch(request_for(invalid))
