"""An EC2 account: moto's server on a port of its own, called by real boto3 over HTTP."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from moto.server import ThreadedMotoServer

from scheduling.capacity.runtimes import aws
from scheduling.capacity.runtimes.base import LaunchRequest, Offering
from scheduling.capacity.runtimes.ec2 import Ec2Runtime
from scheduling.capacity.runtimes.spot_notices import SpotNotices

REGION = "eu-central-1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "moto_url" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """The address of an account with a launch template, shared by all tests; each test has its own pool."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture
def boto_client(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """`boto_client(service)`: a client of the account."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_SESSION_TOKEN": "testing",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setattr(SpotNotices, "wait_seconds", 0)
    return lambda service: aws.client(service, REGION, moto_url)


@pytest.fixture
def unique_name() -> str:
    """A unique name, since all tests share one account."""
    return f"cml-{uuid4().hex[:8]}"


@pytest.fixture
def ec2(boto_client: Callable[[str], Any]) -> Any:
    """A boto3 client of the account."""
    client = boto_client("ec2")
    if not client.describe_launch_templates()["LaunchTemplates"]:
        client.create_launch_template(
            LaunchTemplateName="cml", LaunchTemplateData={"ImageId": "ami-0123456789abcdef0"}
        )
    return client


@pytest.fixture
def ec2_settings(moto_url: str, settings: Any) -> dict[str, Any]:
    settings.CONFIG["PUBLIC_URL"] = "https://lcm.example.org"
    return {
        "region": REGION,
        "launch_template": "cml",
        "offerings": [
            {"instance_type": "m5.large", "zone": "eu-central-1a", "market": "spot"},
            {"instance_type": "m5.large", "zone": "eu-central-1a"},
        ],
        "endpoint_url": moto_url,
    }


@pytest.fixture(autouse=True)
def installation(monkeypatch: pytest.MonkeyPatch) -> str:
    """The installation id of a test's runtimes, without a database; a test can replace it."""
    monkeypatch.setattr(Ec2Runtime, "installation", "lcm-here")
    return "lcm-here"


@pytest.fixture
def runtime(ec2: Any, ec2_settings: dict[str, Any], unique_name: str) -> Ec2Runtime:
    return Ec2Runtime(unique_name, ec2_settings)


@pytest.fixture
def boto_hook(boto_client: Callable[[str], Any]) -> Iterator[Callable[[str, Callable[..., Any]], None]]:
    """`boto_hook(event, handler)`: run a function at an event of botocore until the test ends."""
    registered: list[tuple[Any, str, Callable[..., Any]]] = []

    def hook(event: str, handler: Callable[..., Any]) -> None:
        events = boto_client(event.split(".")[1]).meta.events
        events.register(event, handler)
        registered.append((events, event, handler))

    yield hook
    for events, event, handler in registered:
        events.unregister(event, handler)


@pytest.fixture
def spot_and_on_demand(runtime: Ec2Runtime) -> tuple[Offering, Offering]:
    spot, on_demand = runtime.offerings()
    return spot, on_demand


def request_for(offering: Offering, token: str = "token-1", **fields: Any) -> LaunchRequest:
    values = {"slot_id": "slot-1", "slot_name": "cml-eu-01", **fields}
    return LaunchRequest(token=token, offering=offering, **values)
