"""EC2 error codes and their runtime failures."""

import subprocess
import sys

import pytest
from botocore.awsrequest import AWSResponse

from scheduling.capacity.runtimes.base import (
    CapacityRefused,
    Category,
    Misconfigured,
    QuotaExceeded,
    ResponseLost,
    RuntimeFailure,
    Throttled,
)
from tests.scheduling.capacity.runtimes.conftest import request_for

BODY = """<?xml version="1.0" encoding="UTF-8"?>
<Response><Errors><Error><Code>{code}</Code><Message>Sorry, no.</Message></Error></Errors>
<RequestID>3a5c</RequestID></Response>"""


class RawResponse:
    """The raw response that urllib3 would return."""

    def __init__(self, body):
        self.body = body

    def stream(self, *_, **__):
        yield self.body


@pytest.fixture
def return_ec2_error(boto_hook):
    """`return_ec2_error(operation, code, status)`: let EC2 return this error; return the recorded calls."""

    def return_error(operation, code, status=400):
        calls = []

        def respond(request, **_):
            calls.append(request)
            return AWSResponse(request.url, status, {}, RawResponse(BODY.format(code=code).encode()))

        boto_hook(f"before-send.ec2.{operation}", respond)
        return calls

    return return_error


@pytest.mark.parametrize(
    ("code", "status", "failure"),
    [
        ("InsufficientInstanceCapacity", 500, CapacityRefused),
        ("InsufficientHostCapacity", 400, CapacityRefused),
        ("InsufficientReservedInstanceCapacity", 400, CapacityRefused),
        ("InsufficientFreeAddressesInSubnet", 400, CapacityRefused),
        ("UnfulfillableCapacity", 400, CapacityRefused),
        ("SpotMaxPriceTooLow", 400, CapacityRefused),
        ("Unsupported", 400, CapacityRefused),
        ("MaxSpotInstanceCountExceeded", 400, QuotaExceeded),
        ("InstanceLimitExceeded", 400, QuotaExceeded),
        ("VcpuLimitExceeded", 400, QuotaExceeded),
        ("VolumeLimitExceeded", 400, QuotaExceeded),
        ("RequestLimitExceeded", 503, Throttled),
        ("Throttling", 400, Throttled),
        ("ThrottlingException", 400, Throttled),
        ("UnauthorizedOperation", 403, Misconfigured),
        ("AuthFailure", 401, Misconfigured),
        ("OptInRequired", 401, Misconfigured),
        ("InvalidParameterValue", 400, Misconfigured),
        ("InvalidParameterCombination", 400, Misconfigured),
        ("InvalidLaunchTemplateId.NotFound", 400, Misconfigured),
        ("InvalidLaunchTemplateName.NotFoundException", 400, Misconfigured),
        ("InvalidAMIID.NotFound", 400, Misconfigured),
        ("InvalidAMIID.Unavailable", 400, Misconfigured),
        ("InvalidSubnetID.NotFound", 400, Misconfigured),
        ("InvalidKeyPair.NotFound", 400, Misconfigured),
        ("InvalidGroup.NotFound", 400, Misconfigured),
        ("UnsupportedOperation", 400, Misconfigured),
        ("InternalError", 500, ResponseLost),
        ("Unavailable", 503, ResponseLost),
        ("IdempotentParameterMismatch", 400, ResponseLost),
        ("SomethingNew", 500, ResponseLost),
        ("SomethingNew", 400, RuntimeFailure),
        ("PendingVerification", 400, RuntimeFailure),
    ],
)
def test_each_error_code_raises_its_failure(
    runtime, return_ec2_error, spot_and_on_demand, code, status, failure
):
    calls = return_ec2_error("RunInstances", code, status)
    with pytest.raises(RuntimeFailure, match=f"{code}: Sorry, no.") as error:
        runtime.launch(request_for(spot_and_on_demand[0]))
    assert type(error.value) is failure
    assert len(calls) == 1, "the client does not retry"


def test_every_failure_has_its_category():
    assert {failure.category for failure in (CapacityRefused, Throttled, QuotaExceeded)} == {
        Category.CAPACITY,
        Category.THROTTLED,
        Category.QUOTA,
    }
    assert (Misconfigured.category, ResponseLost.category) == (Category.CONFIGURATION, Category.UNKNOWN)


def test_a_response_that_is_not_xml_counts_as_lost(runtime, boto_hook, spot_and_on_demand):
    def respond(request, **_):
        return AWSResponse(request.url, 200, {}, RawResponse(b"<html>busy"))

    boto_hook("before-send.ec2.RunInstances", respond)
    with pytest.raises(ResponseLost):
        runtime.launch(request_for(spot_and_on_demand[0]))


def test_describe_and_terminate_raise_the_same_failures(runtime, return_ec2_error):
    return_ec2_error("DescribeInstances", "RequestLimitExceeded", 503)
    return_ec2_error("TerminateInstances", "UnauthorizedOperation", 403)
    with pytest.raises(Throttled, match=f"list the instances of {runtime.pool}"):
        list(runtime.describe())
    with pytest.raises(Misconfigured, match="terminate i-1"):
        runtime.terminate("i-1")


def test_terminating_an_unknown_instance_succeeds(runtime, return_ec2_error):
    calls = return_ec2_error("TerminateInstances", "InvalidInstanceID.NotFound")
    runtime.terminate("i-1")
    assert len(calls) == 1


WITHOUT_BOTO3 = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("boto3", "botocore"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
import django
django.setup()
from scheduling.models import Pool
from scheduling.capacity.runtimes.base import Misconfigured
from scheduling.capacity.runtimes.registry import runtime_for, runtime_names, runtime_problems
assert "ec2" in runtime_names()
print(runtime_problems("ec2", {})[""])
assert runtime_for(Pool(name="p", runtime="simulated"))
try:
    runtime_for(Pool(name="p", runtime="ec2"))
except Misconfigured as error:
    print(error)
"""


def test_without_boto3_the_message_names_the_package_to_install(tmp_path, monkeypatch):
    for name, value in {
        "DEBUG": "1",
        "DATA_DIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "lcm.settings",
    }.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([sys.executable, "-c", WITHOUT_BOTO3], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    install = "in LCM's folder, .venv/bin/python -m pip install -c constraints.txt -e '.[aws]'"
    sentence = f"The runtime “ec2” needs boto3, which is not installed: {install}."
    assert done.stdout.splitlines() == [sentence, sentence]
