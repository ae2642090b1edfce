"""Tokens are reused, and renewed once after a rejection."""

import asyncio

import httpx
import pytest

from lcm.cml.client.errors import CmlAuthFailed, CmlMalformedResponse
from lcm.cml.simulator import Fault, FaultKind
from tests.support.cml_environment import Worked, run, simulated
from tests.support.fake_cml import Scripted, ok, status


def test_one_log_in_serves_all_calls():
    async def go():
        async with Worked(simulated()) as cml:
            for _ in range(3):
                await cml.labs()
            return cml.exchanges

    assert run(go()) == [("authenticate", "200"), *[("labs", "200")] * 3]


def test_calls_that_start_together_log_in_once():
    async def go():
        async with Worked(simulated(latency_seconds=0.01)) as cml:
            await asyncio.gather(*(cml.labs() for _ in range(10)))
            return [call for call, _ in cml.exchanges]

    assert run(go()).count("authenticate") == 1


def test_an_expired_token_is_renewed_and_the_call_retried():
    controller = simulated()

    async def go():
        async with Worked(controller) as cml:
            await cml.labs()
            controller.users.forget_all()
            await cml.labs()
            return cml.exchanges[2:]

    assert run(go()) == [("labs", "401"), ("authenticate", "200"), ("labs", "200")]


def test_concurrent_401_responses_cause_one_log_in():
    controller = simulated(latency_seconds=0.01)

    async def go():
        async with Worked(controller) as cml:
            await cml.labs()
            controller.users.forget_all()
            await asyncio.gather(*(cml.labs() for _ in range(8)))
            return [call for call, _ in cml.exchanges]

    assert run(go()).count("authenticate") == 2


def test_a_second_401_is_final():
    worker = Scripted(labs=[status(401, "Token is bad")])

    async def go():
        async with worker.client() as cml:
            await cml.labs()

    with pytest.raises(CmlAuthFailed, match="w1: labs returned 401: Token is bad"):
        run(go())
    assert [name for _, name in worker.seen] == ["authenticate", "labs", "authenticate", "labs"]
    assert worker.tokens == ["", "token-1", "", "token-3"]


def test_wrong_credentials_are_reported_and_not_retried():
    controller = simulated()

    async def go():
        async with Worked(controller, password="wrong") as cml:
            await cml.labs()

    with pytest.raises(CmlAuthFailed, match="authenticate returned 403: Authentication failed!") as caught:
        run(go())
    assert caught.value.status == 403
    assert list(controller.call_counts().values()) == [1]


def test_wrong_credentials_at_renewal_are_reported():
    worker = Scripted(labs=[status(401)], authenticate=[ok("first"), status(403, "Authentication failed!")])

    async def go():
        async with worker.client() as cml:
            await cml.labs()

    with pytest.raises(CmlAuthFailed, match="authenticate returned 403"):
        run(go())


def test_a_403_of_another_call_rejects_only_that_call():
    worker = Scripted(labs=[status(403, "You may not")])

    async def go():
        async with worker.client() as cml:
            await cml.labs()

    with pytest.raises(Exception, match="w1: labs returned 403: You may not") as caught:
        run(go())
    assert type(caught.value).__name__ == "CmlRefused"
    assert worker.count("authenticate") == worker.count("labs") == 1


@pytest.mark.parametrize(
    "answer", [ok(None), ok({}), ok(""), ok(7), ok("a\nb"), ok("ü"), httpx.Response(200)]
)
def test_an_invalid_token_is_not_sent(answer):
    worker = Scripted(authenticate=[answer])

    async def go():
        async with worker.client() as cml:
            await cml.labs()

    with pytest.raises(CmlMalformedResponse, match="not a token"):
        run(go())
    assert worker.count("labs") == 0


def test_the_version_is_requested_without_log_in():
    async def go():
        async with Worked(simulated()) as cml:
            await cml.system_information()
            return cml.exchanges

    assert run(go()) == [("system_information", "200")]


def test_a_401_in_the_middle_of_a_lab_is_retried():
    controller = simulated()
    controller.fail(Fault(FaultKind.UNAUTHORIZED, path="/labs", times=1, skip=1))

    async def go():
        async with Worked(controller) as cml:
            return [await cml.labs() for _ in range(3)]

    assert run(go()) == [(), (), ()]


def test_the_password_is_not_in_the_repr_of_the_worker():
    worker = Scripted().client().worker
    assert "secret" not in repr(worker)
