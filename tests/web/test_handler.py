"""Requests over ASGI: each is one piece of work for one of the process's threads."""

import asyncio
import threading

import pytest
from django.core import signals
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path

from lcm.web.handler import OneThread

seen: list[str] = []


def note(request):
    seen.append(threading.current_thread().name)
    return HttpResponse(request.body)


def stream(request):
    async def parts():
        for part in (b"a", b"b"):
            yield part

    return StreamingHttpResponse(parts())


def fail(request):
    raise RuntimeError("oh")


urlpatterns = [path("note", note), path("stream", stream), path("fail", fail)]
pytestmark = pytest.mark.urls(__name__)


@pytest.fixture
def handler(settings):
    settings.CONFIG["WEB_THREADS"] = 1
    settings.MIDDLEWARE = []
    seen.clear()
    return OneThread()


@pytest.fixture
def finished():
    """The threads in which requests came to their end."""
    ended: list[str] = []

    def end(**kwargs):
        ended.append(threading.current_thread().name)

    signals.request_finished.connect(end)
    yield ended
    signals.request_finished.disconnect(end)


async def ask(handler, where, body=b""):
    """Status and body of an answer."""
    sent = []
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    headers = [(b"content-length", str(len(body)).encode())]
    scope = {"type": "http", "method": "POST", "path": where, "headers": headers, "query_string": b""}
    await handler(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def test_requests_share_the_threads_of_the_process(handler, finished):
    async def several():
        return await asyncio.gather(*(ask(handler, "/note", str(n).encode()) for n in range(5)))

    assert asyncio.run(several()) == [(200, str(n).encode()) for n in range(5)]
    assert set(seen) == {"request_0"}
    assert finished == seen


def test_a_stream_is_sent_whole_and_comes_to_its_end(handler, finished):
    assert asyncio.run(ask(handler, "/stream")) == (200, b"ab")
    assert len(finished) == 1


def test_an_error_is_an_answer_and_the_thread_goes_on(handler, finished):
    assert asyncio.run(ask(handler, "/fail"))[0] == 500
    assert asyncio.run(ask(handler, "/note"))[0] == 200
    assert len(finished) == 2


def test_who_leaves_before_all_was_sent_gets_no_answer(handler, finished):
    async def left():
        async def receive():
            return {"type": "http.disconnect"}

        await handler({"type": "http", "method": "POST", "path": "/note", "headers": []}, receive, None)

    asyncio.run(left())
    assert (seen, finished) == ([], [])
