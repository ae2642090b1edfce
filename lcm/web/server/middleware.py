"""Middleware for request ids, request log, metrics, security policy, database health and time zone."""

from __future__ import annotations

import logging
import re
import time
import uuid
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.cache import patch_cache_control, patch_vary_headers

from lcm.config.logs import request_id
from lcm.monitoring import metrics
from lcm.web.error_pages import method_not_allowed, server_error, unavailable
from lcm.web.server.client_address import client_address
from lcm.web.server.database_health import health
from lcm.web.zones import use_zone_of

logger = logging.getLogger("lcm.requests")

_GIVEN_ID = re.compile(r"^[A-Za-z0-9._-]{8,64}$")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_QUIET = ("/static/", "/healthz", "/readyz", "/metrics")
# Their addresses contain a secret token.
_SECRET_PATHS = {"set_password": "/set-password/…", "unsubscribe": "/unsubscribe/…"}
_PROBES = ("/healthz", "/readyz")

SELF_ONLY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Swagger UI uses inline styles and loads its icons from data: URLs.
FOR_API_DOCS = SELF_ONLY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'").replace(
    "img-src 'self'", "img-src 'self' data:"
)


class RequestContextMiddleware:
    """Set request id and content security policy, log and measure the request.

    The watch process calls `before` and `after` itself.
    """

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        before = self.before(request)
        return self.after(request, self.get_response(request), before)

    def before(self, request: HttpRequest) -> float:
        given = request.headers.get("X-Request-ID", "")
        request_id.set(given if _GIVEN_ID.match(given) else uuid.uuid4().hex)
        return time.perf_counter()

    def after(self, request: HttpRequest, response: HttpResponseBase, before: float) -> HttpResponseBase:
        response["X-Request-ID"] = request_id.get()
        if request.path.startswith("/api/"):
            # Controllers use LCM's clock instead of their own.
            response["X-LCM-Time"] = datetime.now(UTC).isoformat()
        is_docs = request.path == "/api/docs"
        response.headers.setdefault("Content-Security-Policy", FOR_API_DOCS if is_docs else SELF_ONLY)
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        if not request.path.startswith(_QUIET):
            self._note(request, response, time.perf_counter() - before)
        request_id.set("")
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the API's error format where Django would show its debug page."""
        if not settings.DEBUG or not request.path.startswith("/api/"):
            return None
        logger.error("server_error", extra={"path": request.path}, exc_info=error)
        return server_error(request)

    def _note(self, request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
        view = request.resolver_match.view_name if request.resolver_match else "unknown"
        method = request.method if request.method in _METHODS else "OTHER"
        metrics.REQUESTS.labels(view=view, method=method, status=response.status_code).inc()
        metrics.REQUEST_SECONDS.labels(view=view).observe(seconds)
        logger.info(
            "request",
            extra={
                "method": request.method,
                "path": _SECRET_PATHS.get(view, request.path),
                "client": client_address(request),
                "status": response.status_code,
                "ms": round(seconds * 1000, 1),
            },
        )


class DatabaseHealthMiddleware:
    """Return 503 while the database is down, and end requests that wait for it."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path in _PROBES:
            return self._respond(request)
        if health.is_unavailable:
            return unavailable(request)
        with health.watched():
            response = self._respond(request)
        if response.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
            health.report_error()
        return response

    def _respond(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = self.get_response(request)
        return response


class PreferencesMiddleware:
    """Activate the person's time zone for pages and UTC for the API; keep both out of shared caches.

    A method that a page does not accept gets an error page here, in the same language and time zone.
    """

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # The API authenticates by itself. Probes must not wait for the database because of a cookie.
        is_page = not request.path.startswith(("/api/", *_QUIET))
        with use_zone_of(request.user) if is_page else timezone.override(UTC):
            response: HttpResponseBase = self.get_response(request)
            if is_page and response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
                response = method_not_allowed(request, response["Allow"])
        if not request.path.startswith("/static/"):
            patch_vary_headers(response, ["HX-Request", "Cookie"])
            if "Cache-Control" not in response:
                patch_cache_control(response, private=True, no_cache=True)
        return response
