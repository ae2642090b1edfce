"""The long poll of the watch process: `GET /api/internal/watch?since=REVISION&wait=SECONDS`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponseBase, JsonResponse

from lcm.api.watch.hub import hub
from lcm.api.watch.long_poll import watch
from lcm.api.watch.view import WatchView
from lcm.domain.errors import RETRY_SECONDS, LcmError
from lcm.web.server.database_health import in_database_thread


async def long_poll(request: HttpRequest) -> HttpResponseBase:
    """Authenticate in a thread, then wait for changes without a thread or connection."""
    try:
        admitted = await in_database_thread(lambda: WatchView().admit(request))
        if isinstance(admitted, HttpResponseBase):
            return admitted
        watched = await watch(hub(), admitted.scope, admitted.since, admitted.wait)
    except LcmError as error:
        response = error_response(error.status, error.code, error.message, error.details)
        if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
            response["Retry-After"] = str(RETRY_SECONDS)
        return response
    changes = [vars(change) for change in watched.changes]
    return _json({"revision": watched.revision, "changes": changes})


def error_response(status: int, code: str, message: str, details: object = None) -> JsonResponse:
    """Return an error in the format of the API."""
    return _json({"code": code, "message": message, "details": details or {}}, status)


def _json(body: dict[str, Any], status: int = 200) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})
