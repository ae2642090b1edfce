"""ASGI application of the watch process.

A waiting request uses no thread and no database connection, so one process serves all controllers. Django's
own ASGI handler keeps a thread for each request.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from inspect import iscoroutinefunction
from io import BytesIO
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.security import SecurityMiddleware
from django.urls import Resolver404, resolve

from lcm.api.watch.long_poll_view import error_response
from lcm.web.error_pages import server_error
from lcm.web.server.database_health import health
from lcm.web.server.middleware import RequestContextMiddleware

logger = logging.getLogger(__name__)

URLS = "lcm.api.watch.urls"


class WatchServer:
    """Runs views with request id, log, metrics and security headers, but without sign-in or forms."""

    def __init__(self) -> None:
        self._context = RequestContextMiddleware(_not_called)
        self._security = SecurityMiddleware(_not_called)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise ValueError(f"The watch process does not support {scope['type']} connections")
        response = await self._respond(ASGIRequest(scope, BytesIO()))
        headers = [
            (name.lower().encode("latin1"), value.encode("latin1")) for name, value in response.items()
        ]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": response.content})

    async def _respond(self, request: HttpRequest) -> HttpResponse:
        before = self._context.before(request)
        response: HttpResponse = await self._view_response(request)
        if response.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
            health.report_error()
        self._security.process_response(request, response)
        self._context.after(request, response, before)
        response["Content-Length"] = str(len(response.content))
        return response

    async def _view_response(self, request: HttpRequest) -> Any:
        try:
            match = resolve(request.path_info, urlconf=URLS)
            request.resolver_match = match
            if redirect := self._security.process_request(request):
                return redirect
            if iscoroutinefunction(match.func):
                return await match.func(request)
            return await asyncio.to_thread(match.func, request)
        except Resolver404:
            return error_response(404, "not_found", "This process serves only the watch, probes and metrics.")
        except SuspiciousOperation:
            return error_response(400, "bad_request", "Invalid request.")
        except Exception:
            logger.exception("server_error", extra={"path": request.path})
            return server_error(request)


def _not_called(request: HttpRequest) -> HttpResponseBase:
    raise NotImplementedError
