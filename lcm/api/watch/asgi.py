"""ASGI handler of the watch, without middleware that it does not need and that would use threads."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response

from lcm.web.server.asgi_handler import LcmAsgiHandler
from lcm.web.server.middleware import RequestContextMiddleware

PATH = "/api/internal/watch"


class WatchHandler(LcmAsgiHandler):
    """Runs the view with request id, log and metrics, but without sessions, forms or messages."""

    def load_middleware(self, is_async: bool = False) -> None:
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        view = convert_exception_to_response(self._get_response_async)  # type: ignore[attr-defined]
        self._middleware_chain = convert_exception_to_response(RequestContextMiddleware(view))


class WatchDispatcher:
    """Sends watch requests to their own handler and all other requests to Django."""

    def __init__(self, django: Any) -> None:
        self._django = django
        self._watch = WatchHandler()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        is_watch = scope["type"] == "http" and scope["path"].rstrip("/") == PATH
        handler = self._watch if is_watch and _is_allowed_scheme(scope) else self._django
        await handler(scope, receive, send)


def _is_allowed_scheme(scope: Any) -> bool:
    """Return whether the request may be handled here; Django redirects plain HTTP if HTTPS is required."""
    if not settings.HTTPS:
        return True
    forwarded = dict(scope["headers"]).get(b"x-forwarded-proto", b"")
    return bool(scope.get("scheme") == "https" or forwarded == b"https")
