"""Django behind an ASGI server: one way into a thread and out again, no word about those who do not wait."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest

logger = logging.getLogger(__name__)


class Handler(ASGIHandler):
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


class OneThread(Handler):
    """All middleware and the view in the request's thread.

    Django's own chain goes to a thread and back twice for each middleware, which costs more than most views.
    Only the watch waits without a thread, and it has a handler of its own.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> Any:
        return await sync_to_async(self.get_response)(request)
