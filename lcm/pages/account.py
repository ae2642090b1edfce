"""Sign-in, theme and suggestions."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from lcm.domain.roles import Role
from lcm.extensions import Extension
from lcm.models import Theme, User
from lcm.web.access import is_local_address, public, role_required
from lcm.web.server.known_browser import remember_browser
from lcm.web.server.rate_limit import record_failure, seconds_until_retry

A_YEAR = 365 * 24 * 3600


class LoginForm(AuthenticationForm):
    """Sign-in form with LCM's error messages."""

    error_messages = {
        "invalid_login": _("Wrong user name or password."),
        "inactive": _("This account has been closed."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"

    def clean(self) -> dict[str, Any]:
        """Reject without checking the password once an address has failed too often for this name."""
        assert self.request is not None
        name = self.cleaned_data.get("username", "")
        wait = seconds_until_retry(self.request, name=name)
        if wait is not None:
            raise ValidationError(
                gettext("Too many failed attempts from this address. Try again in %(wait)s s.")
                % {"wait": f"{wait:.0f}"}
            )
        try:
            return super().clean()
        except ValidationError:
            record_failure(self.request, name=name)
            raise


class SignInView(LoginView):
    """The sign-in page; marks the browser as known after a sign-in."""

    form_class = LoginForm
    template_name = "login.html"
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        remember_browser(self.request, response, form.cleaned_data["username"])
        return response


log_in = public(SignInView.as_view())
log_out = public(LogoutView.as_view())


@require_GET
@public
def favicon(request: HttpRequest) -> HttpResponseBase:
    """Serve the icon for pages that do not link it: the admin and the API documentation."""
    return redirect(static("icon.svg"), permanent=True)


@require_POST
@public
def set_theme(request: HttpRequest) -> HttpResponseBase:
    """Set the theme of this browser and of the signed-in person."""
    theme = request.POST.get("theme", "")
    back = request.POST.get("next", "")
    if not is_local_address(request, back):
        back = reverse("home")
    response = redirect(back)
    if theme in Theme.values:
        remember_theme(request, response, theme)
        if request.user.is_authenticated:
            User.objects.filter(pk=request.user.pk).update(theme=theme)
    return response


def remember_theme(request: HttpRequest, response: HttpResponseBase, theme: str) -> None:
    """Store the theme in a cookie of this browser."""
    response.set_cookie("lcm_theme", theme, max_age=A_YEAR, samesite="Lax", secure=request.is_secure())


@require_GET
@role_required(Role.OPERATOR)
def suggest(request: HttpRequest, kind: str) -> HttpResponseBase:
    """Return names that match the input, as options of a datalist."""
    text = str(next(iter(request.GET.values()), ""))[:100].replace("\0", "")
    suggesters = Extension.installed().suggestions
    if kind not in suggesters:
        return JsonResponse(
            {"code": "not_found", "message": gettext("Page not found."), "details": {}}, status=404
        )
    return render(request, "components/suggestions.html", {"options": suggesters[kind](text.strip())})
