"""`GET /api/internal/watch?since=REVISION&wait=SECONDS`: a long poll without a thread or connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from asgiref.sync import SyncToAsync, sync_to_async
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lcm.api.schema import ErrorSerializer
from lcm.api.watch.hub import hub
from lcm.api.watch.long_poll import watch
from lcm.domain.access import CONTROLLER, ControllerScope
from lcm.domain.errors import RETRY_SECONDS, InvalidInput, LcmError
from lcm.models import FeedKind
from lcm.web.server.database_health import while_database_answers

T = TypeVar("T")

MAX_WAIT = 30.0
DEFAULT_WAIT = 25.0
LONGEST_REVISION = 18  # digits


class FeedChangeSerializer(serializers.Serializer[Any]):
    revision = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=FeedKind.choices)
    id = serializers.UUIDField()
    pool = serializers.CharField()


class WatchSerializer(serializers.Serializer[Any]):
    revision = serializers.IntegerField(help_text="Pass this as the next `since`.")
    changes = FeedChangeSerializer(many=True)


@dataclass(frozen=True)
class WatchRequest:
    """A validated watch request."""

    scope: ControllerScope
    since: int | None
    wait: float


class WatchView(APIView):
    """Changes in a controller's pools; waits up to 30 s for a change.

    DRF checks token, policy and rate limit in a shared thread; waiting needs no thread.
    """

    access = {"get": CONTROLLER}

    @extend_schema(
        tags=["controllers"],
        operation_id="internal_watch",
        parameters=[
            OpenApiParameter(
                "since",
                {"type": "integer", "format": "int64", "minimum": 0, "maximum": 10**LONGEST_REVISION - 1},
                description="Default: return the current revision immediately.",
            ),
            OpenApiParameter(
                "wait",
                {"type": "number", "minimum": 0, "maximum": MAX_WAIT},
                description="Seconds; default 25.",
            ),
        ],
        responses={200: WatchSerializer, 410: ErrorSerializer},
    )
    def get(self, request: Request) -> Response:
        """Serve the schema and synchronous servers, without waiting."""
        raise NotImplementedError

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        async def answer(request: HttpRequest) -> HttpResponseBase:
            try:
                admitted = await while_database_answers(lambda: _in_thread(cls(**initkwargs).admit, request))
                if isinstance(admitted, HttpResponseBase):
                    return admitted
                found = await watch(hub(), admitted.scope, admitted.since, admitted.wait)
            except LcmError as error:
                return _refusal(error)
            changes = [vars(change) for change in found.changes]
            return _json({"revision": found.revision, "changes": changes})

        # The schema generator finds the view class by this attribute.
        vars(answer).update(cls=cls, initkwargs=initkwargs)
        return csrf_exempt(answer)

    def admit(self, request: HttpRequest) -> WatchRequest | HttpResponseBase:
        """Return the validated request, or a finished error response."""
        try:
            self.args, self.kwargs = (), {}
            self.request = self.initialize_request(request)
            self.headers = self.default_response_headers
            try:
                if request.method != "GET":
                    self.http_method_not_allowed(self.request)
                self.initial(self.request)
                return _parse_request(self.request)
            except Exception as error:
                refused = self.handle_exception(error)
                finished: HttpResponseBase = self.finalize_response(self.request, refused).render()
                return finished
        finally:
            close_old_connections()


def _parse_request(request: Request) -> WatchRequest:
    principal: Any = request.user
    since, wait = request.query_params.get("since"), request.query_params.get("wait")
    if since is not None and not (since.isascii() and since.isdigit() and len(since) <= LONGEST_REVISION):
        raise InvalidInput({"since": _("Must be the revision of an earlier response.")})
    return WatchRequest(principal.scope, None if since is None else int(since), _seconds(wait))


def _seconds(text: str | None) -> float:
    try:
        seconds = DEFAULT_WAIT if text is None else float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_WAIT:
        raise InvalidInput({"wait": _("Must be between 0 and %(max)s seconds.") % {"max": f"{MAX_WAIT:.0f}"}})
    return seconds


def _refusal(error: LcmError) -> JsonResponse:
    body = {"code": error.code, "message": error.message, "details": error.details}
    response = _json(body, status=error.status)
    if error.status == 503:
        response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _json(body: dict[str, Any], status: int = 200) -> JsonResponse:
    response = JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})
    response["Content-Length"] = len(response.content)
    return response


async def _in_thread(admit: Callable[[HttpRequest], T], request: HttpRequest) -> T:
    """Run the function in one of a few threads that all requests share.

    Django reserves a thread per request for synchronous code. It is released here; later synchronous code
    gets another one. Outside a server only the caller's thread exists.
    """
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context is None:
        return await sync_to_async(admit)(request)
    executor = SyncToAsync.context_to_thread_executor.pop(context, None)
    if executor is not None:
        executor.shutdown(wait=False)
    return await asyncio.to_thread(admit, request)
