"""ASGI handlers: one thread per request, and no error log for clients that disconnect."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponseBase
from django.middleware.security import SecurityMiddleware
from django.urls import set_script_prefix

from lcm.domain.errors import DatabaseUnavailable
from lcm.web.error_pages import unavailable
from lcm.web.server.database_health import health, while_database_answers
from lcm.web.server.health import not_ready_in_time
from lcm.web.server.middleware import RequestContextMiddleware

logger = logging.getLogger(__name__)

ALIVE, READY = "/healthz", "/readyz"
# These respond even while all request threads wait for the database.
WITHOUT_DATABASE = ("/static/", READY)
# Below the promised 3 s, because a thread may wait longer for a pooled connection.
READY_SECONDS = 2.5


class LcmAsgiHandler(ASGIHandler):
    """ASGI handler that consumes the exceptions of Django's disconnect listener.

    Django drops the listener task if the server cancels the request at the same time, and asyncio would
    log the task's exception as an error.
    """

    async def listen_for_disconnect(self, receive: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(_consume_exception)
        await super().listen_for_disconnect(receive)


def _consume_exception(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception():
        logger.debug("client_left")


class ThreadedAsgiHandler(LcmAsgiHandler):
    """ASGI handler that runs each request, from first to last signal, in one thread of a pool.

    Django's own handler creates a thread per request, with its own connection and cache, and switches
    threads for every signal and middleware, which costs more than most views. The watch waits without a
    thread and has its own handler.
    """

    def __init__(self) -> None:
        super().__init__()
        self._threads = ThreadPoolExecutor(settings.CONFIG["WEB_THREADS"], thread_name_prefix="request")
        self._spare_threads = ThreadPoolExecutor(4, thread_name_prefix="spare")
        self._unavailable = RequestContextMiddleware(SecurityMiddleware(unavailable))
        self._not_ready = RequestContextMiddleware(SecurityMiddleware(not_ready_in_time))

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        response = await self._respond(scope, body)
        try:
            await self.send_response(response, send)
        finally:
            if response.streaming:
                await sync_to_async(response.close)()

    async def _respond(self, scope: Any, body: Any) -> HttpResponseBase:
        """Return the response from a thread, which finishes its work even if the client disconnects."""
        if scope["path"] == ALIVE:
            return self._run(scope, body)
        loop = asyncio.get_running_loop()
        if scope["path"].startswith(WITHOUT_DATABASE):
            work = loop.run_in_executor(self._spare_threads, self._run, scope, body)
            try:
                return await asyncio.wait_for(work, READY_SECONDS if scope["path"] == READY else None)
            except TimeoutError:
                return self._refuse(scope, self._not_ready)
        try:
            response = await while_database_answers(
                lambda: loop.run_in_executor(self._threads, self._run, scope, body)
            )
        except DatabaseUnavailable:
            return self._refuse(scope, self._unavailable)
        if response.status_code == 503:
            health.repair_pool_soon()
        return response

    def _refuse(self, scope: Any, view: RequestContextMiddleware) -> HttpResponseBase:
        """Return a 503 without a thread, with the usual headers and log line."""
        request, refusal = self.create_request(scope, BytesIO())
        response: HttpResponseBase | None = view(request) if request else refusal
        assert response is not None
        return response

    def _run(self, scope: Any, body: Any) -> HttpResponseBase:
        """Run the synchronous part of a request, then return the thread's connection to the pool."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        response = self._response(request) if request else refusal
        assert response is not None
        body.close()
        if response.streaming:
            close_old_connections()
        else:
            response.close()
        return response

    def _response(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = self.get_response(request)
        response._handler_class = self.__class__  # type: ignore[attr-defined]
        return response
