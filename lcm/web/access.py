"""Access decorators for pages; the permission matrix test reads the roles they record."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from lcm.domain.access import PUBLIC, AccessPolicy
from lcm.domain.roles import Role, role_of

View = Callable[..., HttpResponseBase]


def role_required(role: Role) -> Callable[[View], View]:
    """Restrict a page to a role and above; redirect anonymous users to the sign-in page, refuse others."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: object, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _to_login(request)
            if role_of(request.user) < role:
                raise PermissionDenied(
                    _("This page requires the role %(role)s or higher.") % {"role": role.label}
                )
            return view(request, *args, **kwargs)

        guarded.rule = AccessPolicy(role)  # type: ignore[attr-defined]
        return guarded

    return decorate


def _to_login(request: HttpRequest) -> HttpResponseBase:
    """Redirect to the sign-in page and back; for htmx, redirect the whole page instead of the fragment."""
    if not htmx_of(request):
        return redirect_to_login(request.get_full_path())
    current_url = htmx_of(request).current_url_abs_path or reverse("home")
    return HttpResponseClientRedirect(redirect_to_login(current_url).url)


def htmx_of(request: HttpRequest) -> HtmxDetails:
    """Return the htmx headers of a request; false in a condition if htmx did not send it."""
    details: HtmxDetails = request.htmx  # type: ignore[attr-defined]
    return details


def is_local_address(request: HttpRequest, address: str) -> bool:
    """Return whether an address is on this host, and on HTTPS if the request is secure."""
    return url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())


def public(view: View) -> View:
    """Mark a page as accessible without signing in."""
    view.rule = PUBLIC  # type: ignore[attr-defined]
    return view
