"""Django behind an ASGI server, without a word about those who do not wait for their answer."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from django.core.handlers.asgi import ASGIHandler

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
