"""Injected faults, over ASGI and over real HTTP."""

import json
import time

import httpx
import pytest

from tests.support.cml_environment import TWO_ROUTERS, make_simulator, run
from tests.support.simulator import Fault, FaultKind, FaultySimulator

BASE = "http://cml.test/api/v0/"


def responses_to(controller, *calls, body=b""):
    """Return the responses to calls of a logged-in user."""

    async def exchange():
        transport = httpx.ASGITransport(FaultySimulator(controller))
        token = controller.users.log_in({"username": "admin", "password": "simulated"}, controller.now)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers) as client:
            return [await client.request(method, path, content=body) for method, path in calls]

    return run(exchange())


def statuses(controller, *calls, **options):
    return [response.status_code for response in responses_to(controller, *calls, **options)]


def test_a_status_fault_applies_to_matching_calls_the_given_number_of_times():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.STATUS, path="^/labs$", method="GET", skip=1, times=2, status=502))
    labs = ("GET", "labs")
    assert statuses(controller, labs, labs, ("GET", "system_information"), labs, labs) == [
        200,
        502,
        200,
        502,
        200,
    ]
    assert controller.faults == []


def test_a_failed_call_is_executed_only_if_the_fault_says_so():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.STATUS, path="/import", times=1))
    assert statuses(controller, ("POST", "import"), body=TWO_ROUTERS.encode()) == [503]
    assert len(controller.labs) == 0
    controller.faults = [Fault(FaultKind.STATUS, path="/import", times=1, executed=True)]
    assert statuses(controller, ("POST", "import"), body=TWO_ROUTERS.encode()) == [503]
    assert len(controller.labs) == 1


def test_a_401_fault_invalidates_the_token():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.UNAUTHORIZED, skip=1, times=1))
    assert statuses(controller, *[("GET", "labs")] * 3) == [200, 401, 401]


def test_a_truncate_fault_halves_the_json():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.TRUNCATE, path="system_information"))
    body = responses_to(controller, ("GET", "system_information"))[0].content
    with pytest.raises(ValueError):
        json.loads(body)


def test_fields_are_removed_at_any_depth():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.MISSING_FIELDS, fields=["total", "version"]))
    stats, information = responses_to(controller, ("GET", "system_stats"), ("GET", "system_information"))
    assert '"total"' not in stats.text
    assert set(information.json()) == {"ready", "allow_ssh_pubkey_auth", "oui"}


def test_a_response_is_replaced():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.REPLACE, path="labs", body="<html>"))
    assert responses_to(controller, ("GET", "labs"))[0].text == "<html>"


def test_latency_adds_to_another_fault():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.LATENCY, seconds=0.05))
    controller.fail(Fault(FaultKind.STATUS, status=500))
    before = time.monotonic()
    assert statuses(controller, ("GET", "labs")) == [500]
    assert time.monotonic() - before >= 0.05


@pytest.mark.integration
@pytest.mark.parametrize("executed", [False, True])
def test_a_connection_is_dropped_in_the_middle(simulator, executed):
    address = simulator.admin.add("dropping")
    try:
        simulator.admin.fail("dropping", Fault(FaultKind.DROP, path="/import", times=1, executed=executed))
        token = httpx.post(
            f"{address}/api/v0/authenticate", json={"username": "admin", "password": "simulated"}
        ).json()
        with pytest.raises(httpx.TransportError):
            httpx.post(
                f"{address}/api/v0/import",
                content=TWO_ROUTERS.encode(),
                headers={"Authorization": f"Bearer {token}"},
            )
        assert len(simulator.admin.controllers()["dropping"]["labs"]) == (1 if executed else 0)
    finally:
        simulator.admin.remove("dropping")
