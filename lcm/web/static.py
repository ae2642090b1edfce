"""WhiteNoise with answers that are sent at once."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise streams files from a synchronous iterator, which Django would read on another thread."""

    def __call__(self, request: HttpRequest) -> Any:
        path = request.path_info
        file = self.find_file(path) if self.autorefresh else self.files.get(path)
        return self.get_response(request) if file is None else self._whole(file, request)

    def _whole(self, file: Any, request: HttpRequest) -> HttpResponse:
        found = self.serve(file, request)
        with_body = b"".join(found.streaming_content) if found.streaming else found.content
        found.close()
        return HttpResponse(with_body, status=found.status_code, headers=dict(found.items()))
