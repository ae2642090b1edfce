"""WhiteNoise without a thread for each request: it answers static files and passes all others on."""

from __future__ import annotations

from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise only knows synchronous chains; one such link would put async views on threads."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if self.is_async:
            return self._answer_async(request)
        return self._static(request) or self.get_response(request)

    async def _answer_async(self, request: HttpRequest) -> Any:
        if not request.path_info.startswith(self.static_prefix):
            return await self.get_response(request)
        return await sync_to_async(self._static, thread_sensitive=False)(request) or await self.get_response(
            request
        )

    def _static(self, request: HttpRequest) -> HttpResponse | None:
        path = request.path_info
        file = self.find_file(path) if self.autorefresh else self.files.get(path)
        if file is None:
            return None
        found = self.serve(file, request)
        with_body = b"".join(found.streaming_content) if found.streaming else found.content
        found.close()
        return HttpResponse(with_body, status=found.status_code, headers=dict(found.items()))
