"""The page behind a link to set a password, for people who cannot sign in yet."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from lcm.domain.errors import InvalidInput, LcmError
from lcm.models import User
from lcm.pages.people import NewPasswordForm
from lcm.services.password_links import link_tokens, set_password_by_link
from lcm.web.access import public
from lcm.web.forms import add_errors
from lcm.web.server.rate_limit import record_failure, seconds_until_retry


class SetPasswordView(PasswordResetConfirmView):
    """Django's view keeps the token out of the address of the form; LCM's service sets the password.

    All invalid links get the same page: of unknown people, closed accounts, expired and used links.
    """

    template_name = "people/set_password.html"
    token_generator = link_tokens
    form_class = NewPasswordForm  # type: ignore[assignment]
    success_url = reverse_lazy("login")

    def dispatch(self, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().dispatch(*args, **kwargs)
        if response.status_code == HTTPStatus.OK and not self.validlink:
            response.status_code = HTTPStatus.NOT_FOUND
            if seconds_until_retry(self.request) is not None:
                response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            record_failure(self.request)
        return response

    def get_user(self, uidb64: str) -> User | None:
        user = super().get_user(uidb64)
        return user if isinstance(user, User) and user.is_active else None

    def get_form_kwargs(self) -> dict[str, Any]:
        kwargs = super().get_form_kwargs()
        del kwargs["user"]
        return kwargs

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        name = self.user.get_username() if self.user else ""
        return super().get_context_data(**kwargs, form_user=name)

    def form_valid(self, form: Any) -> HttpResponse:
        assert self.user is not None
        try:
            set_password_by_link(user=self.user, new=form.cleaned_data["new"], now=timezone.now())
        except InvalidInput as error:
            add_errors(form, error)
            return self.form_invalid(form)
        except LcmError as error:
            form.add_error(None, error.message)
            return self.form_invalid(form)
        messages.success(self.request, gettext("Password set. Sign in with it."))
        return super(PasswordResetConfirmView, self).form_valid(form)

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        response.status_code = HTTPStatus.UNPROCESSABLE_ENTITY
        return response


@require_http_methods(["GET", "POST"])
def _set_password(request: HttpRequest, uidb64: str, token: str) -> HttpResponseBase:
    return SetPasswordView.as_view()(request, uidb64=uidb64, token=token)


set_password = public(_set_password)
