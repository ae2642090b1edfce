"""Token pages: a key is shown once, when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from lcm.access import PROMETHEUS_SCOPE
from lcm.models import ApiToken, TokenKind
from lcm.pages.bulk import REVOKE
from lcm.pages.lists import TOKENS
from lcm.roles import Role
from lcm.selectors import names
from lcm.services import tokens as services
from lcm.web.access import role_required
from lcm.web.bulk import bulk_page
from lcm.web.form_pages import Done, FormPage, actor_of, form_page, save_form
from lcm.web.forms import LocalDateTimeField, NamedField, PageForm, ReasonForm
from lcm.web.lists import list_page


class TokenForm(PageForm):
    name = forms.CharField(max_length=63, help_text="What it is for, for example “controller eu-1”.")
    kind = forms.TypedChoiceField(choices=TokenKind.choices, coerce=TokenKind, initial=TokenKind.CONTROLLER)
    pools = forms.CharField(
        required=False,
        max_length=2000,
        help_text="For a controller: the pools it serves, with commas between them.",
    )
    prometheus = forms.BooleanField(
        required=False,
        label="For Prometheus",
        help_text="A controller's token that may read what there is to scrape; without pools, nothing else.",
    )
    user = NamedField(
        find=names.find_person,
        suggest="people",
        required=False,
        label="Person",
        help_text="For a person's token: whose role it has.",
    )
    expires_at = LocalDateTimeField(label="Expires")

    def scopes(self) -> list[str]:
        pools = [f"pool:{name.strip()}" for name in self.cleaned_data["pools"].split(",") if name.strip()]
        return [*pools, PROMETHEUS_SCOPE] if self.cleaned_data["prometheus"] else pools


@require_GET
@role_required(Role.ADMIN)
def token_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, TOKENS)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def token_create(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()
    crumbs = [("Tokens", reverse("token_list")), ("New token", "")]
    made: list[tuple[ApiToken, str]] = []

    def save(data: Mapping[str, Any]) -> Done:
        plain = {name: data[name] for name in ("name", "kind", "user", "expires_at")}
        made.append(services.create_token(**plain, scopes=form.scopes(), actor=actor_of(request), now=now))
        return Done("", "")

    text = "Its key is shown once, on the next page."
    page = FormPage("New token", TokenForm, "Create token", save, reverse("token_list"), text, crumbs=crumbs)
    form = TokenForm(
        request.POST if request.method == "POST" else None,
        initial={"expires_at": now + timedelta(days=settings.CONFIG["TOKEN_DAYS"])},
    )
    if form.is_bound and save_form(form, save):
        return _show_once(request, *made[0])
    context = {"page": page, "form": form, "crumbs": crumbs}
    return render(request, "form.html", context, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def token_rotate(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    token = get_object_or_404(ApiToken, pk=pk)
    crumbs = [("Tokens", reverse("token_list")), (token.name, ""), ("Rotate", "")]
    made: list[tuple[ApiToken, str]] = []

    def save(data: Mapping[str, Any]) -> Done:
        reason, actor = data["reason"], actor_of(request)
        made.append(services.rotate_token(token=token, reason=reason, actor=actor, now=timezone.now()))
        return Done("", "")

    text = "A new key takes its place. The present one stops working at once."
    page = FormPage(
        f"Rotate {token}?", ReasonForm, "Rotate token", save, reverse("token_list"), text, True, crumbs=crumbs
    )
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_bound and save_form(form, save):
        return _show_once(request, *made[0])
    context = {"page": page, "form": form, "crumbs": crumbs}
    return render(request, "form.html", context, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def token_revoke(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    token = get_object_or_404(ApiToken, pk=pk)

    def save(data: Mapping[str, Any]) -> Done:
        services.revoke_token(token=token, reason=data["reason"], actor=actor_of(request), now=timezone.now())
        return Done(f"Token {token} revoked.", reverse("token_list"))

    page = FormPage(
        title=f"Revoke {token}?",
        text="Whoever uses it is refused from now on. It cannot be brought back.",
        form=ReasonForm,
        submit="Revoke token",
        danger=True,
        save=save,
        back=reverse("token_list"),
        crumbs=[("Tokens", reverse("token_list")), (token.name, ""), ("Revoke", "")],
    )
    return form_page(request, page)


@require_POST
@role_required(Role.ADMIN)
def token_bulk_revoke(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, REVOKE.name)


def _show_once(request: HttpRequest, token: ApiToken, key: str) -> HttpResponseBase:
    crumbs = [("Tokens", reverse("token_list")), (token.name, "")]
    response = render(request, "tokens/created.html", {"token": token, "key": key, "crumbs": crumbs})
    response["Cache-Control"] = "no-store"
    return response
