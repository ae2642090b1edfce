"""How requests pass through Django: one way into a thread and out again."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest


class OneThread(ASGIHandler):
    """All middleware and the view in the request's thread.

    Django's own chain goes to a thread and back twice for each middleware, which costs more than most views.
    Only the watch waits without a thread, and it has a handler of its own.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> Any:
        return await sync_to_async(self.get_response)(request)
