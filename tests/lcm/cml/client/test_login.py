"""Tokens are reused, and renewed once after a rejection."""

import asyncio

import httpx
import pytest

from lcm.cml.client.errors import CmlAuthFailed, CmlMalformedResponse
from tests.support.cml_environment import RecordingClient, make_simulator, run
from tests.support.fake_cml import ScriptedWorker, ok, status
from tests.support.simulator import Fault, FaultKind


def test_one_log_in_serves_all_calls():
    async def scenario():
        async with RecordingClient(make_simulator()) as cml:
            for _ in range(3):
                await cml.labs()
            return cml.exchanges

    assert run(scenario()) == [("authenticate", "200"), *[("labs", "200")] * 3]


def test_calls_that_start_together_log_in_once():
    async def scenario():
        async with RecordingClient(make_simulator(latency_seconds=0.01)) as cml:
            await asyncio.gather(*(cml.labs() for _ in range(10)))
            return [call for call, _ in cml.exchanges]

    assert run(scenario()).count("authenticate") == 1


def test_an_expired_token_is_renewed_and_the_call_retried():
    controller = make_simulator()

    async def scenario():
        async with RecordingClient(controller) as cml:
            await cml.labs()
            controller.users.tokens.clear()
            await cml.labs()
            return cml.exchanges[2:]

    assert run(scenario()) == [("labs", "401"), ("authenticate", "200"), ("labs", "200")]


def test_concurrent_401_responses_cause_one_log_in():
    controller = make_simulator(latency_seconds=0.01)

    async def scenario():
        async with RecordingClient(controller) as cml:
            await cml.labs()
            controller.users.tokens.clear()
            await asyncio.gather(*(cml.labs() for _ in range(8)))
            return [call for call, _ in cml.exchanges]

    assert run(scenario()).count("authenticate") == 2


def test_a_second_401_is_final():
    worker = ScriptedWorker(labs=[status(401, "Token is bad")])

    async def scenario():
        async with worker.client() as cml:
            await cml.labs()

    with pytest.raises(CmlAuthFailed, match="w1: labs returned 401: Token is bad"):
        run(scenario())
    assert [name for _, name in worker.requests] == ["authenticate", "labs", "authenticate", "labs"]
    assert worker.tokens == ["", "token-1", "", "token-3"]


def test_wrong_credentials_are_reported_and_not_retried():
    controller = make_simulator()

    async def scenario():
        async with RecordingClient(controller, password="wrong") as cml:
            await cml.labs()

    with pytest.raises(CmlAuthFailed, match="authenticate returned 403: Authentication failed!") as caught:
        run(scenario())
    assert caught.value.status == 403
    assert list(controller.call_counts().values()) == [1]


def test_wrong_credentials_at_renewal_are_reported():
    worker = ScriptedWorker(
        labs=[status(401)], authenticate=[ok("first"), status(403, "Authentication failed!")]
    )

    async def scenario():
        async with worker.client() as cml:
            await cml.labs()

    with pytest.raises(CmlAuthFailed, match="authenticate returned 403"):
        run(scenario())


def test_a_403_of_another_call_rejects_only_that_call():
    worker = ScriptedWorker(labs=[status(403, "You may not")])

    async def scenario():
        async with worker.client() as cml:
            await cml.labs()

    with pytest.raises(Exception, match="w1: labs returned 403: You may not") as caught:
        run(scenario())
    assert type(caught.value).__name__ == "CmlRejected"
    assert worker.count("authenticate") == worker.count("labs") == 1


@pytest.mark.parametrize(
    "response", [ok(None), ok({}), ok(""), ok(7), ok("a\nb"), ok("ü"), httpx.Response(200)]
)
def test_an_invalid_token_is_not_sent(response):
    worker = ScriptedWorker(authenticate=[response])

    async def scenario():
        async with worker.client() as cml:
            await cml.labs()

    with pytest.raises(CmlMalformedResponse, match="not a token"):
        run(scenario())
    assert worker.count("labs") == 0


def test_the_version_is_requested_without_log_in():
    async def scenario():
        async with RecordingClient(make_simulator()) as cml:
            await cml.system_information()
            return cml.exchanges

    assert run(scenario()) == [("system_information", "200")]


def test_a_401_in_the_middle_of_a_lab_is_retried():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.UNAUTHORIZED, path="/labs", times=1, skip=1))

    async def scenario():
        async with RecordingClient(controller) as cml:
            return [await cml.labs() for _ in range(3)]

    assert run(scenario()) == [(), (), ()]


def test_the_password_is_not_in_the_repr_of_the_worker():
    worker = ScriptedWorker().client().worker
    assert "secret" not in repr(worker)
