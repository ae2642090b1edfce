"""Error pages in the layout of the site; API errors keep the API's format."""

from __future__ import annotations

import logging
import re
import sys
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from lcm.config.logs import request_id
from lcm.domain.errors import RETRY_SECONDS, DatabaseUnavailable, ReferenceGone
from lcm.domain.roles import Role, role_of
from lcm.models import ChangeLog
from lcm.selectors.organisation import admin_names, last_change_of
from lcm.web.access import is_local_address, public
from lcm.web.navigation import NavEntry, navigation_groups
from lcm.web.object_links import exists
from lcm.web.wording import list_text

logger = logging.getLogger(__name__)

# The database is unreachable, refuses connections, is locked or closed the connection.
DATABASE_ERRORS = (OperationalError, InterfaceError)
FOREIGN_KEY_VIOLATION = "23503"  # SQLSTATE
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# An address has at most two ids: of an object and of a part of it.
MAX_IDS = 2


def is_failed_foreign_key(error: BaseException | None) -> bool:
    """Return whether a PostgreSQL or SQLite error is a foreign key violation."""
    if not isinstance(error, IntegrityError):
        return False
    return getattr(error.__cause__, "sqlstate", "") == FOREIGN_KEY_VIOLATION or "FOREIGN KEY" in str(error)


def bad_request(request: HttpRequest, exception: object = None) -> HttpResponse:
    text = _("LCM could not read the request. Go back, reload the page and try again.")
    return _page(request, 400, "bad_request", _("Invalid request"), text)


def forbidden(request: HttpRequest, exception: object = None) -> HttpResponse:
    text = str(exception) or _("Your role does not allow this.")
    return _page(request, 403, "permission_denied", _("Access denied"), text, access=_access_text(request))


def not_found(request: HttpRequest, exception: object = None) -> HttpResponse:
    text = _("The address may be wrong, or the object was deleted.")
    if not request.path.startswith("/api/") and (change := _last_change(request)):
        text = _("The object of this address was deleted. This is its last change:")
        return _page(request, 404, "not_found", _("Page not found"), text, change=change)
    return _page(request, 404, "not_found", _("Page not found"), text)


def method_not_allowed(request: HttpRequest, allowed: str) -> HttpResponse:
    """Explain that a page was opened with the wrong method, usually from a bookmark of a form's address."""
    text = _(
        "This address does not accept %(method)s requests. "
        "It belongs to a form or an action: open the page with the form and submit it again."
    )
    method = {"method": request.method}
    response = _page(request, 405, "method_not_allowed", _("Action not possible this way"), text % method)
    response["Allow"] = allowed
    return response


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


def _role(request: HttpRequest) -> Role:
    return role_of(getattr(request, "user", None))


def _access_text(request: HttpRequest) -> str:
    """Return the person's role, and who can assign another one."""
    role = _role(request)
    if not role:
        return _("An Admin assigns roles.")
    return _("You have the role %(role)s. Admins can assign another one: %(names)s.") % {
        "role": role.label,
        "names": list_text(admin_names() or [_("none")]),
    }


def _last_change(request: HttpRequest) -> ChangeLog | None:
    """Return the last change of the deleted object in the address, for people who may read the change log."""
    if not _role(request):
        return None
    changes = (last_change_of(key) for key in _ID.findall(request.path)[:MAX_IDS])
    return next((change for change in changes if change and not exists(change)), None)


def _list_of(request: HttpRequest) -> NavEntry | None:
    """Return the list that the address belongs to, if the person may open it."""
    entries = (entry for group in navigation_groups() for entry in group.entries)
    return next(
        (each for each in entries if request.path.startswith(each.prefixes) and _role(request) >= each.role),
        None,
    )


def _previous_page(request: HttpRequest) -> str:
    """Return the page on this host that led here, unless it is the same page."""
    referer = request.headers.get("Referer", "")
    is_usable = is_local_address(request, referer) and urlsplit(referer).path != request.path
    return referer if referer and is_usable else ""


def server_error(request: HttpRequest) -> HttpResponse:
    """Render the 500 page without database or context processors, which may be what failed."""
    error = sys.exception()
    if isinstance(error, DATABASE_ERRORS):
        logger.error("database_error", exc_info=error)
        return unavailable(request)
    if is_failed_foreign_key(error):
        logger.warning("foreign_key_failed", exc_info=error)
        error = ReferenceGone()
        return _bare_page(request, error.status, error.code, _("The change was not saved"), error.message, {})
    text = _("The error was logged. Try again; if it persists, give an administrator the request ID below.")
    return _bare_page(request, 500, "server_error", _("Something went wrong"), text, {"id": request_id.get()})


def unavailable(request: HttpRequest) -> HttpResponse:
    """Render the 503 page without a query: neither the session nor the user can be read."""
    error = DatabaseUnavailable()
    response = _bare_page(request, error.status, error.code, _("LCM is unavailable"), error.message, {})
    response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _bare_page(
    request: HttpRequest, status: int, code: str, title: str, text: str, details: dict[str, Any]
) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse({"code": code, "message": text, "details": details}, status=status)
    context = {"title": title, "text": text, "request_id": request_id.get(), "status": status}
    # Only a GET can be repeated without a second effect.
    again = request.get_full_path() if request.method == "GET" else ""
    return render(None, "errors/500.html", {**context, "again": again}, status=status)


def _page(request: HttpRequest, status: int, code: str, title: str, text: str, **more: Any) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse({"code": code, "message": text, "details": {}}, status=status)
    context = {
        "title": title,
        "text": text,
        "request_id": request_id.get(),
        "status": status,
        "crumbs": [(title, "")],
        "list": _list_of(request),
        "previous": _previous_page(request),
        **more,
    }
    return render(request, "errors/error.html", context, status=status)
