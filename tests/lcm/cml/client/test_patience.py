"""Retries: which calls, how often, and for how long."""

import asyncio
import time

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.cml.client.caller import RetryPolicy
from lcm.cml.client.client import CmlClient
from lcm.cml.client.endpoint import CmlEndpoint
from lcm.cml.client.errors import CmlError, CmlFailed, CmlRejected, CmlTimeout, CmlUnreachable
from tests.support.cml_environment import QUICK_RETRIES, TWO_ROUTERS, RecordingClient, make_simulator, run
from tests.support.fake_cml import ScriptedWorker, ok, status
from tests.support.simulator import Fault, FaultKind

WORKER = CmlEndpoint("w1", "https://cml.test", "admin", "secret")
BROKEN = httpx.ReadError("gone")
REFUSED = httpx.ConnectError("connection refused")


def error_of(worker, call):
    """Return the error class of a call, or None."""

    async def scenario():
        async with worker.client() as cml:
            await call(cml)

    try:
        run(scenario())
    except CmlError as error:
        return type(error)
    return None


@pytest.mark.parametrize("transient", [status(502), status(503), status(429), BROKEN, REFUSED], ids=str)
def test_transient_failures_of_idempotent_calls_are_retried(transient):
    worker = ScriptedWorker(labs=[transient, transient, ok([])])
    assert error_of(worker, lambda cml: cml.labs()) is None
    assert worker.count("labs") == 3


@pytest.mark.parametrize(
    ("transient", "error"),
    [(status(502), CmlFailed), (status(429), CmlRejected), (REFUSED, CmlUnreachable)],
    ids=str,
)
def test_retries_are_limited(transient, error):
    worker = ScriptedWorker(labs=[transient])
    assert error_of(worker, lambda cml: cml.labs()) is error
    assert worker.count("labs") == 3


@pytest.mark.parametrize("code", [400, 403, 404, 405, 409, 500, 501, 504, 302])
def test_other_failures_are_raised_at_once(code):
    worker = ScriptedWorker(labs=[status(code)])
    assert error_of(worker, lambda cml: cml.labs()) is not None
    assert worker.count("labs") == 1


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("start", lambda cml: cml.start_lab("l")),
        ("stop", lambda cml: cml.stop_lab("l")),
        ("wipe", lambda cml: cml.wipe_lab("l")),
        ("l", lambda cml: cml.delete_lab("l")),
        ("n", lambda cml: cml.set_node_tags("l", "n", [])),
        ("authenticate", lambda cml: cml.labs()),
    ],
)
def test_idempotent_actions_are_retried(name, call):
    worker = ScriptedWorker(**{name: [status(503), ok("t")], "labs": [ok([])]})
    assert error_of(worker, call) is None
    assert worker.count(name) == 2


@pytest.mark.parametrize("transient", [status(502), status(503), status(429), BROKEN], ids=str)
def test_an_import_is_never_retried(transient):
    worker = ScriptedWorker(**{"import": [transient, ok({"id": "x"})]})
    assert error_of(worker, lambda cml: cml.import_lab("x", title="t")) is not None
    assert worker.count("import") == 1


def test_an_import_is_retried_after_401_because_it_was_not_executed():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.UNAUTHORIZED, path="/import", times=1))

    async def scenario():
        async with RecordingClient(controller) as cml:
            await cml.import_lab(TWO_ROUTERS, title="t")

    run(scenario())
    assert len(controller.labs) == 1


def test_a_delete_whose_response_was_lost_succeeds():
    controller = make_simulator()

    async def scenario():
        async with RecordingClient(controller) as cml:
            lab_id = await cml.import_lab(TWO_ROUTERS, title="t")
            controller.fail(Fault(FaultKind.STATUS, path=f"/labs/{lab_id}$", times=1, executed=True))
            await cml.delete_lab(lab_id)

    run(scenario())
    assert controller.labs == {}


def test_an_exchange_and_the_whole_call_have_timeouts():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.LATENCY, path="/labs", seconds=60))
    retry_policy = RetryPolicy(exchange_seconds=0.05, call_seconds=0.12, attempts=10, first_pause=0.001)

    async def scenario():
        async with RecordingClient(controller, retry_policy=retry_policy) as cml:
            await cml.labs()

    before = time.monotonic()
    with pytest.raises(CmlTimeout, match="w1: labs: no response within"):
        run(scenario())
    assert time.monotonic() - before < 30


def test_an_endless_body_times_out():
    async def drip():
        while True:
            yield b"["
            await asyncio.sleep(0.01)

    dripping = httpx.MockTransport(lambda _: httpx.Response(200, content=drip()))
    retry_policy = RetryPolicy(exchange_seconds=0.2, attempts=1)

    async def scenario():
        async with CmlClient(WORKER, retry_policy=retry_policy, transport=dripping) as cml:
            await cml.system_information()

    with pytest.raises(CmlTimeout):
        run(scenario())


def test_retry_after_is_honoured_within_bounds():
    assert QUICK_RETRIES.pause(0, retry_after=3) == QUICK_RETRIES.longest_pause
    assert RetryPolicy(draw=lambda: 0.5).pause(0, retry_after=3) == 3
    worker = ScriptedWorker(labs=[status(429, Retry_After="1"), ok([])])
    assert error_of(worker, lambda cml: cml.labs()) is None


@given(st.integers(0, 20), st.floats(0, 1, exclude_max=True), st.one_of(st.none(), st.floats(0, 1e6)))
def test_pauses_have_jitter_and_bounds(attempt, jitter, retry_after):
    pause = RetryPolicy(draw=lambda: jitter).pause(attempt, retry_after)
    assert 0.1 <= pause <= 5


def test_cancelling_a_call_cancels_its_request():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.LATENCY, path="/labs", seconds=60))

    async def scenario():
        async with RecordingClient(controller) as cml:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await cml.labs()
            return cml.exchanges[-1]

    assert run(scenario()) == ("labs", "cancelled")
