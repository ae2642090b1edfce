"""Only watch requests use the watch's own handler."""

import asyncio
import gc
from unittest.mock import AsyncMock

import pytest

from lcm.api.watch.asgi import PATH, WatchDispatcher, WatchHandler
from lcm.web.server.asgi_handler import LcmAsgiHandler

LEFT = {"type": "http.disconnect"}


@pytest.fixture
def ways(monkeypatch):
    """`ways(path, …)`: which handler gets a request."""
    taken = []

    def handler(name):
        async def handle(scope, receive, send):
            taken.append(name)

        return handle

    def ask(path, kind="http", scheme="http", headers=()):
        first = WatchDispatcher(handler("django"))
        first._watch = handler("watch")
        scope = {"type": kind, "path": path, "scheme": scheme, "headers": list(headers)}
        asyncio.run(first(scope, None, None))
        return taken[-1]

    return ask


@pytest.mark.parametrize(
    ("path", "way"),
    [
        (PATH, "watch"),
        (f"{PATH}/", "watch"),
        ("/api/internal/watches", "django"),
        ("/api/internal/slots", "django"),
        ("/", "django"),
    ],
)
def test_only_watch_requests_get_the_watch_handler(ways, path, way):
    assert ways(path) == way


def test_other_protocols_are_handled_by_django(ways):
    assert ways(PATH, kind="websocket") == "django"


@pytest.mark.parametrize(
    ("scheme", "headers", "way"),
    [
        ("http", [], "django"),
        ("https", [], "watch"),
        ("http", [(b"x-forwarded-proto", b"https")], "watch"),
        ("http", [(b"x-forwarded-proto", b"http")], "django"),
    ],
)
def test_django_redirects_plain_http_if_https_is_required(ways, settings, scheme, headers, way):
    settings.HTTPS = True
    assert ways(PATH, scheme=scheme, headers=headers) == way


@pytest.mark.parametrize("handler", [WatchHandler, LcmAsgiHandler])
def test_a_disconnect_during_cancellation_is_not_an_error(handler, caplog):
    """The server cancels a request whose client has disconnected; the listener's result is not awaited."""

    async def leave():
        listening = asyncio.create_task(handler().listen_for_disconnect(AsyncMock(return_value=LEFT)))
        await asyncio.wait([listening])

    with caplog.at_level("DEBUG"):
        asyncio.run(leave())
        gc.collect()
    assert [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"] == []
    assert "client_left" in caplog.messages
