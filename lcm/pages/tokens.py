"""Token pages; a token's key is shown once, on creation."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from lcm.domain.access import PROMETHEUS_SCOPE
from lcm.domain.roles import Role
from lcm.extensions import Extension
from lcm.models import ApiToken, TokenKind
from lcm.models.records import POOL_SCOPE
from lcm.pages.bulk_actions import REVOKE
from lcm.pages.lists import TOKENS
from lcm.selectors import names, organisation
from lcm.services import tokens as services
from lcm.web.bulk_actions import bulk_view
from lcm.web.form_page import FormPage, actor_of, form_view, service_call
from lcm.web.forms import LocalDateTimeField, NamedField, PageForm
from lcm.web.list_page import list_view
from lcm.web.wording import ago_text, list_text


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
        widget=forms.CheckboxSelectMultiple,
        help_text=_(
            "Pools that the controller serves. "
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
    pools = [(f"{POOL_SCOPE}{name}", name) for read in Extension.installed().token_pools for name in read()]
    return [*pools, (PROMETHEUS_SCOPE, gettext("Prometheus targets"))]


token_list = list_view(TOKENS, Role.ADMIN)


@form_view(Role.ADMIN)
def token_create(request: HttpRequest) -> FormPage:
    now = timezone.now()
    values = request.POST if request.method == "POST" else request.GET
    kind = TokenKind.PERSON if values.get("kind") == TokenKind.PERSON else TokenKind.CONTROLLER
    expiry = now + timedelta(days=settings.CONFIG["TOKEN_DAYS"])
    return FormPage(
        title=gettext("New token"),
        text=gettext(
            "**The key is shown once, on the next page.** "
            "A controller's token is limited to its pools. A person's token has the person's permissions."
        ),
        form=FORMS[kind],
        submit=gettext("Create token"),
        save=lambda data: services.create_token(**data, actor=actor_of(request), now=now),
        show=lambda created: _show_once(request, *created),
        initial={"kind": kind, "kinds": list(FORMS), "expires_at": expiry},
        crumbs=_crumbs(gettext("New token")),
        template="tokens/new.html",
    )


@form_view(Role.ADMIN)
def token_rotate(request: HttpRequest, pk: UUID) -> FormPage:
    token = get_object_or_404(organisation.tokens(), pk=pk)
    days = (token.expires_at - token.created_at).days
    lifetime = ngettext("%(count)s day", "%(count)s days", days) % {"count": f"{days:,}"}
    return FormPage(
        title=gettext("Rotate %(token)s?") % {"token": token},
        text=gettext(
            "**The current key stops working immediately. Every client needs the new key.** %(use)s "
            "The new key is shown once, on the next page, and is valid for %(life)s."
        )
        % {"use": _usage_text(token), "life": lifetime},
        submit=gettext("Rotate token"),
        danger=True,
        save=service_call(request, services.rotate_token, token=token),
        show=lambda created: _show_once(request, *created),
        crumbs=_crumbs(gettext("Rotate %(token)s") % {"token": token}),
    )


@form_view(Role.ADMIN)
def token_revoke(request: HttpRequest, pk: UUID) -> FormPage:
    token = get_object_or_404(organisation.tokens(), pk=pk)
    return FormPage(
        title=gettext("Revoke %(token)s?") % {"token": token},
        text=gettext("**Requests with this token are rejected from now on.** %(use)s This cannot be undone.")
        % {"use": _usage_text(token)},
        submit=gettext("Revoke token"),
        danger=True,
        save=service_call(request, services.revoke_token, token=token),
        done=gettext("Token %(token)s revoked.") % {"token": token},
        crumbs=_crumbs(gettext("Revoke %(token)s") % {"token": token}),
    )


token_bulk_revoke = bulk_view(REVOKE, Role.ADMIN)


def _usage_text(token: ApiToken) -> str:
    """Return whom the token is for and when it was last used."""
    holder = token.user.username if token.user else list_text(token.scope_labels)
    if token.last_used_at is None:
        return gettext("The token is for %(holder)s and has never been used.") % {"holder": holder}
    return gettext("The token is for %(holder)s and was last used %(ago)s.") % {
        "holder": holder,
        "ago": ago_text(token.last_used_at - timezone.now()),
    }


def _show_once(request: HttpRequest, token: ApiToken, key: str) -> HttpResponseBase:
    context = {"token": token, "key": key, "crumbs": _crumbs(token.name)}
    response = render(request, "tokens/created.html", context)
    response["Cache-Control"] = "no-store"
    return response


def _crumbs(last: str) -> list[tuple[str, str]]:
    return [(gettext("Tokens"), reverse("token_list")), (last, "")]
