"""`GET /api/internal/watch`: access and parameters of the long poll, and the redirect of web processes."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lcm.api.authentication import controller_token
from lcm.api.schema import ErrorSerializer
from lcm.domain.access import CONTROLLER, ControllerScope
from lcm.domain.errors import InvalidInput, WatchNotRouted
from lcm.models import FeedKind
from lcm.supervisor.address import Address, watch_address

MAX_WAIT = 30.0
DEFAULT_WAIT = 25.0
LONGEST_REVISION = 18  # digits


class FeedChangeSerializer(serializers.Serializer[object]):
    revision = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=FeedKind.choices)
    id = serializers.UUIDField()
    pool = serializers.CharField()


class WatchSerializer(serializers.Serializer[object]):
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

    A web process redirects to the watch process, because a waiting request would occupy one of its threads.
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
        responses={
            200: WatchSerializer,
            307: OpenApiResponse(
                description="Send the request, with the token, to the URL in `Location`: the watch process. "
                "A proxy that routes this path to the watch process never returns 307."
            ),
            410: ErrorSerializer,
            421: ErrorSerializer,
        },
    )
    def get(self, request: Request) -> Response:
        """Redirect to the watch process."""
        _parse_request(request)
        headers = {"Location": _watch_url(request), "Cache-Control": "no-store"}
        return Response(status=HTTPStatus.TEMPORARY_REDIRECT, headers=headers)

    def initial(self, request: Request, *args: object, **kwargs: Any) -> None:
        if request.method != "GET":
            self.http_method_not_allowed(request)
        super().initial(request, *args, **kwargs)

    def admit(self, request: HttpRequest) -> WatchRequest | HttpResponseBase:
        """Return the validated request, or a finished error response, for the watch process."""
        self.args, self.kwargs = (), {}
        self.request = self.initialize_request(request)
        self.headers = self.default_response_headers
        try:
            self.initial(self.request)
            return _parse_request(self.request)
        except Exception as error:
            error_response = self.handle_exception(error)
            finished: HttpResponseBase = self.finalize_response(self.request, error_response).render()
            return finished


def _watch_url(request: Request) -> str:
    """Return the URL of this request at the watch process.

    Behind a TLS proxy LCM cannot know it: the watch process itself serves plain HTTP.
    """
    path = request.get_full_path()
    if base := settings.CONFIG["WATCH_URL"]:
        return f"{base.rstrip('/')}{path}"
    if request.is_secure():
        raise WatchNotRouted
    host = urlsplit(f"//{request.get_host()}").hostname or ""
    return f"http://{Address(host, watch_address(settings.CONFIG).port)}{path}"


def _parse_request(request: Request) -> WatchRequest:
    since, wait = request.query_params.get("since"), request.query_params.get("wait")
    if since is not None and not (since.isascii() and since.isdigit() and len(since) <= LONGEST_REVISION):
        raise InvalidInput({"since": _("Must be the revision of an earlier response.")})
    return WatchRequest(
        controller_token(request).scope, None if since is None else int(since), _seconds(wait)
    )


def _seconds(text: str | None) -> float:
    try:
        seconds = DEFAULT_WAIT if text is None else float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_WAIT:
        raise InvalidInput({"wait": _("Must be between 0 and %(max)s seconds.") % {"max": f"{MAX_WAIT:.0f}"}})
    return seconds
