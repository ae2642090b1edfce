"""The form page: a full page, or a dialog that htmx opens over another page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django_htmx.http import HttpResponseClientRedirect

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, LcmError
from lcm.models import User
from lcm.web.forms import PageForm, add_errors

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class FormResult:
    """Toast message and redirect target after a form was saved."""

    message: str
    url: str


@dataclass(frozen=True)
class FormPage:
    title: StrOrPromise
    form: type[PageForm]
    submit: StrOrPromise
    save: Callable[[Mapping[str, Any]], FormResult]
    back: str
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


def form_page(request: HttpRequest, page: FormPage) -> HttpResponseBase:
    """Show the form or save it; errors raised by the service appear at their fields."""
    data = request.POST if request.method == "POST" and not page.refusal else None
    form = page.form(data, request.FILES or None, initial=dict(page.initial))
    status = 422 if page.refusal and request.method == "POST" else 200
    if data is not None:
        done = save_form(form, page.save)
        if done:
            return redirect_with_message(request, done)
        status = 422
    return render_page(
        request, page.template, {"page": page, "form": form, "crumbs": page.crumbs}, status=status
    )


def save_form(form: PageForm, save: Callable[[Mapping[str, Any]], FormResult]) -> FormResult | None:
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
    request: HttpRequest, template: str, context: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render the page, or only its dialog for htmx."""
    name = f"{template}#dialog" if request.htmx else template  # type: ignore[attr-defined]
    return render(request, name, dict(context), status=status)


def redirect_with_message(request: HttpRequest, done: FormResult) -> HttpResponseBase:
    """Redirect to a page that shows the result as a toast."""
    if done.message:
        messages.success(request, done.message)
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponseClientRedirect(done.url)
    return redirect(done.url)


def actor_of(request: HttpRequest) -> Actor:
    assert isinstance(request.user, User)
    return Actor.person(request.user)
