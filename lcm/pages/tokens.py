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
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
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
from lcm.web.wording import ago_text


class TokenForm(PageForm):
    kind = forms.TypedChoiceField(
        label=_("Kind"), choices=TokenKind.choices, coerce=TokenKind, widget=forms.HiddenInput
    )
    name = forms.CharField(
        label=_("Name"), max_length=63, help_text=_("Purpose of the token, for example “controller eu-1”.")
    )
    expires_at = LocalDateTimeField(label=_("Expires"))


class ControllerTokenForm(TokenForm):
    scopes = forms.MultipleChoiceField(
        choices=lambda: _scopes(),
        label=_("Pools or Prometheus"),
        help_text=_(
            "Pools that the controller serves; hold Ctrl or ⌘ to choose several. "
            "With “Prometheus targets” only, the token can read the scrape targets and nothing else."
        ),
        error_messages={"required": _("Choose at least one pool, or Prometheus targets.")},
    )
    field_order = ("kind", "name", "expires_at", "scopes")


class PersonTokenForm(TokenForm):
    user = NamedField(
        find=names.find_person,
        suggest="people",
        label=_("Person"),
        help_text=_("The token has this person's role."),
    )
    field_order = ("kind", "user", "name", "expires_at")


FORMS: dict[TokenKind, type[TokenForm]] = {
    TokenKind.CONTROLLER: ControllerTokenForm,
    TokenKind.PERSON: PersonTokenForm,
}


def _scopes() -> list[tuple[str, str]]:
    pools = [(f"{POOL_SCOPE}{name}", name) for name in registered_names("pools")]
    return [*pools, (PROMETHEUS_SCOPE, gettext("Prometheus targets"))]


@require_GET
@role_required(Role.ADMIN)
def token_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, TOKENS)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def token_create(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()
    crumbs = [(gettext("Tokens"), reverse("token_list")), (gettext("New token"), "")]
    values = request.POST if request.method == "POST" else request.GET
    kind = TokenKind.PERSON if values.get("kind") == TokenKind.PERSON else TokenKind.CONTROLLER
    made: list[tuple[ApiToken, str]] = []

    def save(data: Mapping[str, Any]) -> FormResult:
        made.append(services.create_token(**data, actor=actor_of(request), now=now))
        return FormResult("", "")

    text = gettext(
        "**The key is shown once, on the next page.** "
        "A controller's token is limited to its pools. A person's token has the person's permissions."
    )
    page = FormPage(
        gettext("New token"), FORMS[kind], gettext("Create token"), save, reverse("token_list"), text
    )
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
    crumbs = [
        (gettext("Tokens"), reverse("token_list")),
        (gettext("Rotate %(token)s") % {"token": token}, ""),
    ]
    made: list[tuple[ApiToken, str]] = []

    def save(data: Mapping[str, Any]) -> FormResult:
        reason, actor = data["reason"], actor_of(request)
        made.append(services.rotate_token(token=token, reason=reason, actor=actor, now=timezone.now()))
        return FormResult("", "")

    days = (token.expires_at - token.created_at).days
    life = ngettext("%(count)s day", "%(count)s days", days) % {"count": f"{days:,}"}
    text = gettext(
        "**The current key stops working immediately. Every client needs the new key.** %(use)s "
        "The new key is shown once, on the next page, and is valid for %(life)s."
    ) % {"use": _use(token), "life": life}
    page = FormPage(
        gettext("Rotate %(token)s?") % {"token": token},
        ReasonForm,
        gettext("Rotate token"),
        save,
        reverse("token_list"),
        text,
        True,
        crumbs=crumbs,
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
        return FormResult(gettext("Token %(token)s revoked.") % {"token": token}, reverse("token_list"))

    page = FormPage(
        title=gettext("Revoke %(token)s?") % {"token": token},
        text=gettext("**Requests with this token are rejected from now on.** %(use)s This cannot be undone.")
        % {"use": _use(token)},
        form=ReasonForm,
        submit=gettext("Revoke token"),
        danger=True,
        save=save,
        back=reverse("token_list"),
        crumbs=[
            (gettext("Tokens"), reverse("token_list")),
            (gettext("Revoke %(token)s") % {"token": token}, ""),
        ],
    )
    return form_page(request, page)


@require_POST
@role_required(Role.ADMIN)
def token_bulk_revoke(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, REVOKE.name)


def _use(token: ApiToken) -> str:
    """Return whom the token is for and when it was last used."""
    holder = token.user.username if token.user else gettext(" and ").join(token.scope_labels)
    if token.last_used_at is None:
        return gettext("The token is for %(holder)s and has never been used.") % {"holder": holder}
    return gettext("The token is for %(holder)s and was last used %(ago)s.") % {
        "holder": holder,
        "ago": ago_text(token.last_used_at - timezone.now()),
    }


def _show_once(request: HttpRequest, token: ApiToken, key: str) -> HttpResponseBase:
    crumbs = [(gettext("Tokens"), reverse("token_list")), (token.name, "")]
    response = render(request, "tokens/created.html", {"token": token, "key": key, "crumbs": crumbs})
    response["Cache-Control"] = "no-store"
    return response
