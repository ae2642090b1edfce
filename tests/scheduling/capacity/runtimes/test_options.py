"""Validation of runtime settings when a pool is saved."""

import pytest

from scheduling.capacity.runtimes.base import Market, Misconfigured
from scheduling.capacity.runtimes.ec2 import Ec2Runtime
from scheduling.capacity.runtimes.registry import runtime_for, runtime_names, runtime_problems
from scheduling.capacity.runtimes.simulated import SimulatedRuntime
from scheduling.capacity.runtimes.static import StaticRuntime
from scheduling.models import Pool

WORKER = {"name": "cml-1", "endpoint": "https://cml-1.example.org"}
EC2 = {"region": "eu-central-1", "launch_template": "cml", "offerings": [{"instance_type": "m6i.4xlarge"}]}


def test_runtime_names_are_listed():
    assert runtime_names() == ["ec2", "simulated", "static"]


@pytest.mark.parametrize(
    ("name", "values", "runtime_class"),
    [
        ("simulated", {}, SimulatedRuntime),
        ("static", {"workers": [WORKER]}, StaticRuntime),
        ("ec2", EC2, Ec2Runtime),
    ],
)
def test_a_pool_uses_its_configured_runtime(name, values, runtime_class):
    runtime = runtime_for(Pool(name="cml-eu", runtime=name, runtime_settings=values))
    assert type(runtime) is runtime_class
    assert runtime.pool == "cml-eu"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("simulatd", "There is no runtime “simulatd”; did you mean “simulated”?"),
        ("mainframe", "There is no runtime “mainframe”. There are: ec2, simulated, static."),
    ],
)
def test_an_unknown_runtime_is_rejected(name, message):
    assert runtime_problems(name, {}) == {"": message}
    with pytest.raises(Misconfigured, match=message[:30]):
        runtime_for(Pool(name="cml-eu", runtime=name))


def test_invalid_settings_create_no_runtime():
    with pytest.raises(Misconfigured, match="boot_seconds"):
        runtime_for(Pool(name="cml-eu", runtime="simulated", runtime_settings={"boot_seconds": "5"}))


@pytest.mark.parametrize(
    ("name", "values", "key", "message"),
    [
        (
            "simulated",
            {"boot_second": 5},
            "boot_second",
            "There is no setting “boot_second”; did you mean “boot_seconds”?",
        ),
        (
            "simulated",
            {"boot_seconds": "5"},
            "boot_seconds",
            '“boot_seconds” must be a number from 0 to 3600, but is "5".',
        ),
        ("simulated", {"boot_seconds": True}, "boot_seconds", "but is true."),
        ("simulated", {"boot_seconds": -1}, "boot_seconds", "but is -1."),
        ("simulated", {"boot_seconds": None}, "boot_seconds", "but is null."),
        ("simulated", {"boot_seconds": float("nan")}, "boot_seconds", "but is NaN."),
        ("simulated", {"call_seconds": 61}, "call_seconds", "a number from 0 to 60"),
        ("simulated", {"refuse_percent": 101}, "refuse_percent", "a number from 0 to 100"),
        ("simulated", {"broken": 1}, "broken", "“broken” must be true or false, but is 1."),
        ("simulated", {"refuse_offerings": "sim-large"}, "refuse_offerings", "a list of texts"),
        ("simulated", {"refuse_offerings": ["sim-lrge"]}, "refuse_offerings", "no offering “sim-lrge”"),
        ("simulated", {"offerings": [{"market": "spot"}]}, "offerings[0].name", "is required."),
        (
            "simulated",
            {"offerings": [{"name": "a"}, {"name": "b", "market": "auction"}]},
            "offerings[1].market",
            '“offerings[1].market” must be one of on-demand, spot, but is "auction".',
        ),
        ("simulated", {"offerings": [{"name": "a"}, {"name": "a"}]}, "offerings", "the same name"),
        ("simulated", {"offerings": {"name": "a"}}, "offerings", "a list of objects"),
        ("simulated", [], "", "The settings must be an object of names and values, but is []."),
        ("static", {}, "workers", "“workers” is required."),
        ("static", {"workers": []}, "workers", "must have at least one entry"),
        ("static", {"workers": ["cml-1"]}, "workers[0]", "an object of names and values"),
        ("static", {"workers": [{"name": "cml-1"}]}, "workers[0].endpoint", "is required"),
        ("static", {"workers": [{**WORKER, "name": "cml 1"}]}, "workers[0].name", "letters, digits"),
        ("static", {"workers": [{**WORKER, "endpoint": "cml-1"}]}, "workers[0].endpoint", "an address like"),
        (
            "static",
            {"workers": [{**WORKER, "endpoint": "https://me:secret@cml-1"}]},
            "workers[0].endpoint",
            "an address like",
        ),
        ("static", {"workers": [{**WORKER, "cert": "x"}]}, "workers[0].cert", "no setting “cert”"),
        ("static", {"workers": [WORKER, WORKER]}, "workers", "Two workers are named “cml-1”."),
        ("static", {"workers": [{**WORKER, "name": "x" * 101}]}, "workers[0].name", "at most 100"),
        ("ec2", {**EC2, "region": "Frankfurt"}, "region", "a region like eu-central-1"),
        ("ec2", {**EC2, "launch_template": ""}, "launch_template", "ID (lt-…) or name"),
        ("ec2", {**EC2, "launch_template_version": "newest"}, "launch_template_version", "$Latest"),
        ("ec2", {**EC2, "offerings": []}, "offerings", "at least one"),
        ("ec2", {**EC2, "offerings": [{"instance_type": "big"}]}, "offerings[0].instance_type", "m6i"),
        ("ec2", {**EC2, "offerings": EC2["offerings"] * 2}, "offerings", "m6i.4xlarge is listed twice."),
        (
            "ec2",
            {
                **EC2,
                "offerings": [{"instance_type": "m5.large", "zone": "eu-west-1a", "subnet_id": "subnet-1"}],
            },
            "offerings[0].subnet_id",
            "either the zone or the subnet",
        ),
        ("ec2", {**EC2, "interruption_queue_url": "notices"}, "interruption_queue_url", "a queue"),
        (
            "ec2",
            {**EC2, "endpoint_template": "https://{ip}"},
            "endpoint_template",
            "has the unknown placeholder “ip”",
        ),
        ("ec2", {**EC2, "endpoint_template": "https://{private_ip"}, "endpoint_template", "cannot be read"),
        ("ec2", {**EC2, "endpoint_template": "https://{private_ip.x}"}, "endpoint_template", "unknown"),
        ("ec2", {**EC2, "endpoint_template": "https://{private_ip!r}"}, "endpoint_template", "unknown"),
        ("ec2", {**EC2, "tags": {"lcm:pool": "mine"}}, "tags", "“lcm:pool” is reserved"),
        ("ec2", {**EC2, "tags": {"cost": 5}}, "tags", "an object of names and texts"),
        ("ec2", {**EC2, "tags": {"cost": "x" * 257}}, "tags", "at most 256"),
        ("ec2", {**EC2, "tags": {f"tag-{n}": "x" for n in range(41)}}, "tags", "at most 40"),
    ],
)
def test_an_invalid_setting_is_reported_with_its_path(name, values, key, message):
    problems = runtime_problems(name, values)
    assert list(problems) == [key]
    assert message in problems[key]


def test_all_problems_are_reported_at_once():
    values = {"boot_second": 5, "broken": "yes", "offerings": [{"nme": "a"}]}
    assert set(runtime_problems("simulated", values)) == {
        "boot_second",
        "broken",
        "offerings[0].nme",
        "offerings[0].name",
    }


def test_a_long_value_is_shortened():
    message = runtime_problems("simulated", {"broken": "x" * 1000})["broken"]
    assert len(message) < 120


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("simulated", {"vanish_after_seconds": None, "refuse_offerings": ["sim-large"], "boot_seconds": 0.5}),
        ("simulated", {"spot": True, "refuse_offerings": ["sim-large-spot"]}),
        (
            "static",
            {"workers": [{**WORKER, "ca": ""}, {"name": "b", "endpoint": "http://10.0.0.1:8080/cml"}]},
        ),
        ("ec2", {**EC2, "interruption_queue_url": "", "tags": {"cost": ""}}),
        ("ec2", {**EC2, "endpoint_template": "https://{instance_id}.{{x}}.example.org:443"}),
    ],
)
def test_valid_settings_are_accepted(name, values):
    assert runtime_problems(name, values) == {}


def test_settings_have_defaults_and_types():
    options = SimulatedRuntime("p", {"offerings": [{"name": "a", "market": "spot"}]}).options
    assert (options.launch_seconds, options.boot_seconds, options.vanish_after_seconds) == (3, 5, None)
    assert options.offerings[0].market is Market.SPOT
