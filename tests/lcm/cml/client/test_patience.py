"""What is tried again, how often, and for how long."""

import asyncio
import time

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.cml.client.caller import RetryPolicy
from lcm.cml.client.client import CmlClient
from lcm.cml.client.endpoint import CmlEndpoint
from lcm.cml.client.errors import CmlError, CmlFailed, CmlRefused, CmlTimeout, CmlUnreachable
from lcm.cml.simulator import Fault, FaultKind
from tests.support.cml_environment import HASTY, TWO_ROUTERS, Worked, run, simulated
from tests.support.fake_cml import Scripted, ok, status

WORKER = CmlEndpoint("w1", "https://cml.test", "admin", "secret")
BROKEN = httpx.ReadError("gone")
REFUSED = httpx.ConnectError("nobody there")


def asked(worker, ask):
    """The error of a call, or None."""

    async def go():
        async with worker.client() as cml:
            await ask(cml)

    try:
        run(go())
    except CmlError as error:
        return type(error)
    return None


@pytest.mark.parametrize("passing", [status(502), status(503), status(429), BROKEN, REFUSED], ids=str)
def test_what_passes_is_tried_again_for_calls_that_can_be_repeated(passing):
    worker = Scripted(labs=[passing, passing, ok([])])
    assert asked(worker, lambda cml: cml.labs()) is None
    assert worker.count("labs") == 3


@pytest.mark.parametrize(
    ("passing", "error"),
    [(status(502), CmlFailed), (status(429), CmlRefused), (REFUSED, CmlUnreachable)],
    ids=str,
)
def test_it_is_not_tried_for_ever(passing, error):
    worker = Scripted(labs=[passing])
    assert asked(worker, lambda cml: cml.labs()) is error
    assert worker.count("labs") == 3


@pytest.mark.parametrize("code", [400, 403, 404, 405, 409, 500, 501, 504, 302])
def test_everything_else_is_told_at_once(code):
    worker = Scripted(labs=[status(code)])
    assert asked(worker, lambda cml: cml.labs()) is not None
    assert worker.count("labs") == 1


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("start", lambda cml: cml.start_lab("l")),
        ("stop", lambda cml: cml.stop_lab("l")),
        ("wipe", lambda cml: cml.wipe_lab("l")),
        ("l", lambda cml: cml.delete_lab("l")),
        ("n", lambda cml: cml.set_node_tags("l", "n", [])),
        ("authenticate", lambda cml: cml.labs()),
    ],
)
def test_actions_that_do_the_same_twice_are_repeated(name, ask):
    worker = Scripted(**{name: [status(503), ok("t")], "labs": [ok([])]})
    assert asked(worker, ask) is None
    assert worker.count(name) == 2


@pytest.mark.parametrize("passing", [status(502), status(503), status(429), BROKEN], ids=str)
def test_an_import_is_never_repeated(passing):
    worker = Scripted(**{"import": [passing, ok({"id": "x"})]})
    assert asked(worker, lambda cml: cml.import_lab("x", title="t")) is not None
    assert worker.count("import") == 1


def test_an_import_is_repeated_after_401_because_nothing_was_done():
    controller = simulated()
    controller.fail(Fault(FaultKind.UNAUTHORIZED, path="/import", times=1))

    async def go():
        async with Worked(controller) as cml:
            await cml.import_lab(TWO_ROUTERS, title="t")

    run(go())
    assert len(controller.labs) == 1


def test_a_delete_whose_answer_was_lost_is_success():
    controller = simulated()

    async def go():
        async with Worked(controller) as cml:
            lab_id = await cml.import_lab(TWO_ROUTERS, title="t")
            controller.fail(Fault(FaultKind.STATUS, path=f"/labs/{lab_id}$", times=1, executed=True))
            await cml.delete_lab(lab_id)

    run(go())
    assert controller.labs == {}


def test_one_exchange_has_its_time_and_the_whole_call_too():
    controller = simulated()
    controller.fail(Fault(FaultKind.LATENCY, path="/labs", seconds=60))
    patience = RetryPolicy(exchange_seconds=0.05, call_seconds=0.12, attempts=10, first_pause=0.001)

    async def go():
        async with Worked(controller, patience=patience) as cml:
            await cml.labs()

    before = time.monotonic()
    with pytest.raises(CmlTimeout, match="w1: labs: no response within"):
        run(go())
    assert time.monotonic() - before < 30


def test_a_body_that_never_ends_is_cut_off():
    async def drip():
        while True:
            yield b"["
            await asyncio.sleep(0.01)

    dripping = httpx.MockTransport(lambda _: httpx.Response(200, content=drip()))
    patience = RetryPolicy(exchange_seconds=0.2, attempts=1)

    async def go():
        async with CmlClient(WORKER, patience=patience, transport=dripping) as cml:
            await cml.system_information()

    with pytest.raises(CmlTimeout):
        run(go())


def test_cml_is_given_the_time_it_asks_for_within_bounds():
    assert HASTY.pause(0, asked=3) == HASTY.longest_pause
    assert RetryPolicy(draw=lambda: 0.5).pause(0, asked=3) == 3
    worker = Scripted(labs=[status(429, Retry_After="1"), ok([])])
    assert asked(worker, lambda cml: cml.labs()) is None


@given(st.integers(0, 20), st.floats(0, 1, exclude_max=True), st.one_of(st.none(), st.floats(0, 1e6)))
def test_pauses_are_spread_and_bounded(attempt, drawn, said):
    pause = RetryPolicy(draw=lambda: drawn).pause(attempt, said)
    assert 0.1 <= pause <= 5


def test_cancelling_a_call_cancels_it():
    controller = simulated()
    controller.fail(Fault(FaultKind.LATENCY, path="/labs", seconds=60))

    async def go():
        async with Worked(controller) as cml:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await cml.labs()
            return cml.exchanges[-1]

    assert run(go()) == ("labs", "cancelled")
