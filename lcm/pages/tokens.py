"""Token pages; a token's key is shown once, on creation."""

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

from lcm.domain.access import PROMETHEUS_SCOPE
from lcm.domain.roles import Role
from lcm.models import ApiToken, TokenKind
from lcm.models.records import POOL_SCOPE
from lcm.pages.bulk_actions import REVOKE
from lcm.pages.lists import TOKENS
from lcm.selectors import names, organisation
from lcm.services import tokens as services
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_page
from lcm.web.form_page import FormPage, FormResult, actor_of, form_page, save_form
from lcm.web.forms import LocalDateTimeField, NamedField, PageForm, ReasonForm, registered_names
from lcm.web.list_page import list_page
from lcm.web.wording import ago_text, count_text


class TokenForm(PageForm):
    kind = forms.TypedChoiceField(choices=TokenKind.choices, coerce=TokenKind, widget=forms.HiddenInput)
    name = forms.CharField(max_length=63, help_text="Purpose of the token, for example “controller eu-1”.")
    expires_at = LocalDateTimeField(label="Expires")


class ControllerTokenForm(TokenForm):
    scopes = forms.MultipleChoiceField(
        choices=lambda: _scopes(),
        label="Pools or Prometheus",
        help_text="Pools that the controller serves; hold Ctrl or ⌘ to choose several. "
        "With “Prometheus targets” only, the token can read the scrape targets and nothing else.",
        error_messages={"required": "Choose at least one pool, or Prometheus targets."},
    )
    field_order = ("kind", "name", "expires_at", "scopes")


class PersonTokenForm(TokenForm):
    user = NamedField(
        find=names.find_person,
        suggest="people",
        label="Person",
        help_text="The token has this person's role.",
    )
    field_order = ("kind", "user", "name", "expires_at")


FORMS: dict[TokenKind, type[TokenForm]] = {
    TokenKind.CONTROLLER: ControllerTokenForm,
    TokenKind.PERSON: PersonTokenForm,
}


def _scopes() -> list[tuple[str, str]]:
    pools = [(f"{POOL_SCOPE}{name}", name) for name in registered_names("pools")]
    return [*pools, (PROMETHEUS_SCOPE, "Prometheus targets")]


@require_GET
@role_required(Role.ADMIN)
def token_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, TOKENS)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def token_create(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()
    crumbs = [("Tokens", reverse("token_list")), ("New token", "")]
    values = request.POST if request.method == "POST" else request.GET
    kind = TokenKind.PERSON if values.get("kind") == TokenKind.PERSON else TokenKind.CONTROLLER
    made: list[tuple[ApiToken, str]] = []

    def save(data: Mapping[str, Any]) -> FormResult:
        made.append(services.create_token(**data, actor=actor_of(request), now=now))
        return FormResult("", "")

    text = (
        "**The key is shown once, on the next page.** "
        "A controller's token is limited to its pools. A person's token has the person's permissions."
    )
    page = FormPage("New token", FORMS[kind], "Create token", save, reverse("token_list"), text)
    form = page.form(
        request.POST if request.method == "POST" else None,
        initial={"kind": kind, "expires_at": now + timedelta(days=settings.CONFIG["TOKEN_DAYS"])},
    )
    if form.is_bound and save_form(form, save):
        return _show_once(request, *made[0])
    context = {"page": page, "form": form, "kind": kind, "kinds": list(FORMS), "crumbs": crumbs}
    return render(request, "tokens/new.html", context, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def token_rotate(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    token = get_object_or_404(organisation.tokens(), pk=pk)
    crumbs = [("Tokens", reverse("token_list")), (f"Rotate {token}", "")]
    made: list[tuple[ApiToken, str]] = []

    def save(data: Mapping[str, Any]) -> FormResult:
        reason, actor = data["reason"], actor_of(request)
        made.append(services.rotate_token(token=token, reason=reason, actor=actor, now=timezone.now()))
        return FormResult("", "")

    life = count_text((token.expires_at - token.created_at).days, "day")
    text = (
        f"**The current key stops working immediately. Every client needs the new key.** {_use(token)} "
        f"The new key is shown once, on the next page, and is valid for {life}."
    )
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
    token = get_object_or_404(organisation.tokens(), pk=pk)

    def save(data: Mapping[str, Any]) -> FormResult:
        services.revoke_token(token=token, reason=data["reason"], actor=actor_of(request), now=timezone.now())
        return FormResult(f"Token {token} revoked.", reverse("token_list"))

    page = FormPage(
        title=f"Revoke {token}?",
        text=f"**Requests with this token are rejected from now on.** {_use(token)} This cannot be undone.",
        form=ReasonForm,
        submit="Revoke token",
        danger=True,
        save=save,
        back=reverse("token_list"),
        crumbs=[("Tokens", reverse("token_list")), (f"Revoke {token}", "")],
    )
    return form_page(request, page)


@require_POST
@role_required(Role.ADMIN)
def token_bulk_revoke(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, REVOKE.name)


def _use(token: ApiToken) -> str:
    """Return whom the token is for and when it was last used."""
    holder = token.user.username if token.user else " and ".join(token.scope_labels)
    if token.last_used_at is None:
        return f"The token is for {holder} and has never been used."
    return f"The token is for {holder} and was last used {ago_text(token.last_used_at - timezone.now())}."


def _show_once(request: HttpRequest, token: ApiToken, key: str) -> HttpResponseBase:
    crumbs = [("Tokens", reverse("token_list")), (token.name, "")]
    response = render(request, "tokens/created.html", {"token": token, "key": key, "crumbs": crumbs})
    response["Cache-Control"] = "no-store"
    return response
