"""Django behind an ASGI server: one way into a thread and out again, no word about those who do not wait."""

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
# These answer while all request threads wait for the database.
WITHOUT_DATABASE = ("/static/", READY)
# Less than the 3 s that LCM promises: the pool may keep a thread waiting for a connection for longer.
READY_SECONDS = 2.5


class LcmAsgiHandler(ASGIHandler):
    """Django listens for a disconnect in a task of its own and forgets that task when the server gives the
    request up at the same moment; asyncio would log what it raises as an error.
    """

    async def listen_for_disconnect(self, receive: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(_take_note)
        await super().listen_for_disconnect(receive)


def _take_note(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception():
        logger.debug("client_left")


class ThreadedAsgiHandler(LcmAsgiHandler):
    """A request is one piece of work for one of the process's threads, from its first signal to its last.

    Django's own way makes a thread for each request, with a connection and a cache of its own, and goes
    there and back for every signal and middleware: that costs more than most views. Only the watch waits
    without a thread, and it has a handler of its own.
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
        response = await self._answered(scope, body)
        try:
            await self.send_response(response, send)
        finally:
            if response.streaming:
                await sync_to_async(response.close)()

    async def _answered(self, scope: Any, body: Any) -> HttpResponseBase:
        """The answer from a thread; if the caller leaves meanwhile, the thread still finishes its work."""
        if scope["path"] == ALIVE:
            return self._answer(scope, body)
        loop = asyncio.get_running_loop()
        if scope["path"].startswith(WITHOUT_DATABASE):
            work = loop.run_in_executor(self._spare_threads, self._answer, scope, body)
            try:
                return await asyncio.wait_for(work, READY_SECONDS if scope["path"] == READY else None)
            except TimeoutError:
                return self._refuse(scope, self._not_ready)
        try:
            response = await while_database_answers(
                lambda: loop.run_in_executor(self._threads, self._answer, scope, body)
            )
        except DatabaseUnavailable:
            return self._refuse(scope, self._unavailable)
        if response.status_code == 503:
            health.repair_pool_soon()
        return response

    def _refuse(self, scope: Any, view: RequestContextMiddleware) -> HttpResponseBase:
        """503 without a thread, with the headers and the log line of every answer."""
        request, refusal = self.create_request(scope, BytesIO())
        response: HttpResponseBase | None = view(request) if request else refusal
        assert response is not None
        return response

    def _answer(self, scope: Any, body: Any) -> HttpResponseBase:
        """All that is synchronous, with the thread's connection given back at the end."""
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
