"""Error pages in the layout of the site; API errors keep the API's format."""

from __future__ import annotations

import logging
import sys
from typing import Any

from django.db import IntegrityError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from lcm.config.logs import request_id
from lcm.domain.errors import RETRY_SECONDS, DatabaseUnavailable, ReferenceGone
from lcm.web.access import public

logger = logging.getLogger(__name__)

# The database is unreachable, refuses connections, is locked or closed the connection.
DATABASE_ERRORS = (OperationalError, InterfaceError)
FOREIGN_KEY_VIOLATION = "23503"  # SQLSTATE


def is_failed_foreign_key(error: BaseException | None) -> bool:
    """Return whether a PostgreSQL or SQLite error is a foreign key violation."""
    if not isinstance(error, IntegrityError):
        return False
    return getattr(error.__cause__, "sqlstate", "") == FOREIGN_KEY_VIOLATION or "FOREIGN KEY" in str(error)


def bad_request(request: HttpRequest, exception: Any = None) -> HttpResponse:
    return _page(request, 400, "bad_request", _("Invalid request"), _("Go back and try again."))


def forbidden(request: HttpRequest, exception: Any = None) -> HttpResponse:
    text = str(exception) or _("Your role does not allow this.")
    return _page(request, 403, "permission_denied", _("Access denied"), text)


def not_found(request: HttpRequest, exception: Any = None) -> HttpResponse:
    text = _("The address may be wrong, or the object was deleted.")
    return _page(request, 404, "not_found", _("Page not found"), text)


@csrf_exempt
@public
def unknown_call(request: HttpRequest) -> HttpResponse:
    """Return the API's 404 for an unknown path, also where Django would show its debug page."""
    return not_found(request)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    text = _(
        "The page was open for too long, or cookies are blocked. Go back, reload the page and try again."
    )
    return _page(request, 403, "csrf_failed", _("The form has expired"), text)


def server_error(request: HttpRequest) -> HttpResponse:
    """Render the 500 page without database or context processors, which may be what failed."""
    error = sys.exception()
    if isinstance(error, DATABASE_ERRORS):
        logger.error("database_error", exc_info=error)
        return unavailable(request)
    if is_failed_foreign_key(error):
        logger.warning("foreign_key_failed", exc_info=error)
        gone = ReferenceGone()
        return _bare_page(request, gone.status, gone.code, _("The change was not saved"), gone.message, {})
    text = _("The error was logged. Try again; if it persists, give an administrator the request ID below.")
    return _bare_page(request, 500, "server_error", _("Something went wrong"), text, {"id": request_id.get()})


def unavailable(request: HttpRequest) -> HttpResponse:
    """Render the 503 page without a query: neither the session nor the user can be read."""
    away = DatabaseUnavailable()
    response = _bare_page(request, away.status, away.code, _("LCM is unavailable"), away.message, {})
    response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _bare_page(
    request: HttpRequest, status: int, code: str, title: str, text: str, details: dict[str, Any]
) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse({"code": code, "message": text, "details": details}, status=status)
    context = {"title": title, "text": text, "request_id": request_id.get(), "status": status}
    return render(None, "errors/500.html", context, status=status)


def _page(request: HttpRequest, status: int, code: str, title: str, text: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse({"code": code, "message": text, "details": {}}, status=status)
    context = {"title": title, "text": text, "request_id": request_id.get(), "status": status}
    return render(request, "errors/error.html", context, status=status)
