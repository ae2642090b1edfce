"""Static files: unstreamed responses, and URLs that change with the file."""

from __future__ import annotations

import os
from typing import Any

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

IMMUTABLE = f"max-age={365 * 24 * 3600}, public, immutable"


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise with complete responses; Django would read its synchronous iterator in another thread."""

    def __call__(self, request: HttpRequest) -> Any:
        path = request.path_info
        file = self.find_file(path) if self.autorefresh else self.files.get(path)
        return self.get_response(request) if file is None else self._whole(file, request)

    def _whole(self, file: Any, request: HttpRequest) -> HttpResponse:
        found = self.serve(file, request)
        with_body = b"".join(found.streaming_content) if found.streaming else found.content
        found.close()
        answer = HttpResponse(with_body, status=found.status_code, headers=dict(found.items()))
        if self.autorefresh and "v" in request.GET:
            answer["Cache-Control"] = IMMUTABLE
        return answer


class VersionedStorage(StaticFilesStorage):
    """Versioned URLs for uncollected files (DEBUG), so that browsers cache a file until it changes."""

    def url(self, name: str | None, *args: Any, **kwargs: Any) -> str:
        address = str(super().url(name))
        path = finders.find(name) if name else None
        return f"{address}?v={os.stat(path).st_mtime_ns:x}" if isinstance(path, str) else address
