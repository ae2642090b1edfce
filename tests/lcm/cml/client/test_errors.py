"""Errors carry the worker, the call, the status and CML's description."""

import pickle

import httpx
import pytest

from lcm.cml.client import errors
from lcm.cml.client.client import CmlClient
from lcm.cml.client.endpoint import CmlEndpoint
from lcm.cml.client.errors import (
    CmlError,
    CmlFailed,
    CmlMalformedResponse,
    CmlNotFound,
    CmlRejected,
    CmlUnreachable,
)
from lcm.cml.client.transport import MAX_BODY
from tests.support.cml_environment import QUICK_RETRIES, run
from tests.support.fake_cml import ScriptedWorker, ok, status


def failure(worker, call=lambda cml: cml.labs()):
    async def scenario():
        async with worker.client() as cml:
            await call(cml)

    with pytest.raises(CmlError) as caught:
        run(scenario())
    return caught.value


@pytest.mark.parametrize(
    ("response", "kind", "text"),
    [
        (status(400, "Bad topology"), CmlRejected, "w1: labs returned 400: Bad topology"),
        (status(404, "Lab not found: x"), CmlNotFound, "w1: labs returned 404: Lab not found: x"),
        (status(500, "Oops"), CmlFailed, "w1: labs returned 500: Oops"),
        (
            httpx.Response(500, content=b"<html>proxy</html>"),
            CmlFailed,
            "w1: labs returned 500: <html>proxy</html>",
        ),
        (httpx.Response(500), CmlFailed, "w1: labs returned 500: no description"),
        (httpx.Response(500, content=b"\xff\x00"), CmlFailed, "w1: labs returned 500: "),
        (httpx.Response(400, content=b'{"description": 7}'), CmlRejected, 'returned 400: {"description": 7}'),
        (httpx.Response(302, headers={"Location": "/"}), CmlMalformedResponse, "w1: labs returned 302"),
        (
            httpx.Response(200, content=b"[1"),
            CmlMalformedResponse,
            "returned 200: the response is not JSON",
        ),
        (httpx.Response(200, content=b"[NaN]"), CmlMalformedResponse, "NaN is not JSON"),
        (httpx.Response(200, content=b"[" * 100_000), CmlMalformedResponse, "not JSON"),
        (httpx.Response(200, content=b"9" * 10_000), CmlMalformedResponse, "not JSON"),
        (httpx.Response(204), CmlMalformedResponse, "w1: labs: the response is not a list"),
        (ok({"a": 1}), CmlMalformedResponse, "w1: labs: the response is not a list"),
        (ok([1] * 10_001), CmlMalformedResponse, "the list is too long: 10,001 entries"),
        (httpx.ConnectError("refused"), CmlUnreachable, "w1: labs: refused"),
        (httpx.ReadError(""), CmlUnreachable, "w1: labs: ReadError"),
    ],
    ids=str,
)
def test_an_error_message_is_readable(response, kind, text):
    error = failure(ScriptedWorker(labs=[response]))
    assert type(error) is kind
    assert text in str(error)
    assert (error.worker, error.call) == ("w1", "labs")


def test_a_long_description_is_truncated():
    assert len(str(failure(ScriptedWorker(labs=[status(400, "x" * 100_000)])))) < 600


def test_an_oversized_response_is_not_read_completely():
    error = failure(ScriptedWorker(labs=[httpx.Response(200, content=b" " * (MAX_BODY + 1))]))
    assert "longer than 16 MB" in str(error)


@pytest.mark.parametrize(
    ("name", "call", "response"),
    [
        ("state", lambda cml: cml.lab_state("l"), ok({"state": 1})),
        ("check_if_converged", lambda cml: cml.check_if_converged("l"), ok("yes")),
        ("import", lambda cml: cml.import_lab("x", title="t"), ok({"lab": "x"})),
        ("system_stats", lambda cml: cml.system_stats(), ok([])),
        ("nodes", lambda cml: cml.nodes("l"), ok({})),
        ("lab", lambda cml: cml.lab("l"), ok({"id": "l"})),
        ("lab", lambda cml: cml.lab("l"), ok({"id": "l", "lab_title": 7})),
    ],
)
def test_a_response_of_the_wrong_shape_is_malformed(name, call, response):
    assert isinstance(failure(ScriptedWorker(**{name: [response]}), call), CmlMalformedResponse)


def test_actions_ignore_the_response_body():
    async def scenario():
        async with ScriptedWorker(start=[httpx.Response(200, content=b"Success")]).client() as cml:
            await cml.start_lab("l")

    run(scenario())


def test_ids_are_quoted_in_the_path():
    worker = ScriptedWorker()
    failure(worker, lambda cml: cml.lab_state("../../authenticate?x=1#y"))
    assert worker.requests[-1][1] == "state"


def test_errors_survive_pickling():
    error = CmlNotFound("w1", "state", "Lab not found: x", 404)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.status) == (CmlNotFound, str(error), 404)


def test_every_error_is_a_cml_error():
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    assert all(issubclass(kind, CmlError) for kind in kinds)


@pytest.mark.parametrize("url", ["", "cml.example.org", "ftp://cml", "https://", "file:///etc"])
def test_an_invalid_url_is_rejected_by_the_endpoint(url):
    with pytest.raises(ValueError, match="is not a worker URL"):
        CmlEndpoint("w1", url, "admin", "x")


def test_a_refused_connection_is_unreachable():
    async def scenario():
        async with CmlClient(
            CmlEndpoint("w1", "http://127.0.0.1:1", "a", "b"), retry_policy=QUICK_RETRIES
        ) as cml:
            await cml.system_information()

    with pytest.raises(CmlUnreachable, match="w1: system_information: "):
        run(scenario())
