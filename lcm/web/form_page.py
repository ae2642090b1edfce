"""The form page: a full page, or a dialog that htmx opens over another page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, LcmError
from lcm.domain.roles import Role
from lcm.models import User
from lcm.web.access import View, htmx_of, role_required
from lcm.web.forms import PageForm, ReasonForm, add_errors

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

T = TypeVar("T")


@dataclass(frozen=True)
class FormResult:
    """Toast message and redirect target after a form was saved."""

    message: str
    url: str


@dataclass(frozen=True)
class FormPage:
    """A form with its texts; by default its only field is a reason."""

    title: StrOrPromise
    submit: StrOrPromise
    # Calls the service with the cleaned data.
    save: Callable[[Mapping[str, Any]], Any]
    # The page that “Cancel” leads to: by default the breadcrumb before the last.
    back: str = ""
    # Toast after saving, and the next page: `back` by default. Functions get the result of `save`.
    done: StrOrPromise | Callable[[Any], str] = ""
    next: str | Callable[[Any], str] = ""
    # Renders the result of `save`, instead of a redirect to the next page.
    show: Callable[[Any], HttpResponseBase] | None = None
    form: type[PageForm] = ReasonForm
    text: StrOrPromise = ""
    danger: bool = False
    # Button that closes the dialog without a change.
    dismiss: StrOrPromise = _("Cancel")
    initial: Mapping[str, Any] = field(default_factory=dict)
    crumbs: list[tuple[str, str]] = field(default_factory=list)
    # Links shown above the form.
    links: list[tuple[str, str]] = field(default_factory=list)
    template: str = "form.html"
    # Why the action is impossible; replaces the form.
    refusal: StrOrPromise = ""
    one_column: bool = False

    def respond(self, request: HttpRequest, saved: object) -> HttpResponseBase:
        """Return the response after saving."""
        if self.show:
            return self.show(saved)
        message = self.done(saved) if callable(self.done) else str(self.done)
        url = self.next(saved) if callable(self.next) else self.next or self.back
        return redirect_with_message(request, FormResult(message, url))


def service_call(
    request: HttpRequest, service: Callable[..., T], **known: Any
) -> Callable[[Mapping[str, Any]], T]:
    """Return the `save` of a form that calls a service with its fields, the actor and the time."""
    return lambda data: service(**known, **data, actor=actor_of(request), now=timezone.now())


def form_view(role: Role) -> Callable[[Callable[..., FormPage | HttpResponseBase]], View]:
    """Serve the form page that a function returns, to people with a role; a response is sent as it is."""

    def decorate(make: Callable[..., FormPage | HttpResponseBase]) -> View:
        @wraps(make)
        def view(request: HttpRequest, *args: object, **kwargs: Any) -> HttpResponseBase:
            page = make(request, *args, **kwargs)
            if not isinstance(page, FormPage):
                return page
            return form_page(request, page if page.back else replace(page, back=page.crumbs[-2][1]))

        return require_http_methods(["GET", "POST"])(role_required(role)(view))

    return decorate


def form_page(request: HttpRequest, page: FormPage) -> HttpResponseBase:
    """Show the form or save it; errors raised by the service appear at their fields."""
    data = request.POST if request.method == "POST" and not page.refusal else None
    form = page.form(data, request.FILES or None, initial=dict(page.initial))
    status = 422 if page.refusal and request.method == "POST" else 200
    if data is not None:
        response = save_form(form, lambda data: page.respond(request, page.save(data)))
        if response:
            return response
        status = 422
    return render_page(
        request, page.template, {"page": page, "form": form, "crumbs": page.crumbs}, status=status
    )


def save_form(form: PageForm, save: Callable[[Mapping[str, Any]], T]) -> T | None:
    """Call the service with the cleaned data; return None if the form or the service rejects it."""
    if not form.is_valid():
        return None
    try:
        return save(form.cleaned_data)
    except InvalidInput as error:
        add_errors(form, error)
    except LcmError as error:
        form.add_error(None, error.message)
    return None


def render_page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    part: str = "dialog",
    status: int = 200,
) -> HttpResponse:
    """Render the page, or only one part of its template for htmx: its dialog by default."""
    name = f"{template}#{part}" if htmx_of(request) else template
    return render(request, name, dict(context), status=status)


def redirect_with_message(request: HttpRequest, done: FormResult) -> HttpResponseBase:
    """Redirect to a page that shows the result as a toast."""
    if done.message:
        messages.success(request, done.message)
    return HttpResponseClientRedirect(done.url) if htmx_of(request) else redirect(done.url)


def actor_of(request: HttpRequest) -> Actor:
    assert isinstance(request.user, User)
    return Actor.person(request.user)
