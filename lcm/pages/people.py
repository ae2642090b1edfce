"""People pages: the own profile and password, and roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from lcm.domain.roles import Role, role_of
from lcm.models import Theme, User
from lcm.models.people import time_zones
from lcm.pages.account import remember_theme
from lcm.pages.lists import PEOPLE
from lcm.pages.new_people import ROLE_CHOICES
from lcm.services import people as services
from lcm.web.access import role_required
from lcm.web.form_page import FormPage, actor_of, form_page, form_view
from lcm.web.forms import LongSelect, PageForm, ReasonForm
from lcm.web.list_page import list_view


def _zones() -> list[tuple[str, str]]:
    names = sorted(name for name in time_zones() if "/" in name or name == "UTC")
    return [
        ("", gettext("Default (%(zone)s)") % {"zone": settings.TIME_ZONE}),
        *((name, name) for name in names),
    ]


class ProfileForm(PageForm):
    first_name = forms.CharField(label=_("First name"), max_length=150, required=False)
    last_name = forms.CharField(label=_("Last name"), max_length=150, required=False)
    email = forms.EmailField(label=_("Email"), required=False)
    time_zone = forms.ChoiceField(
        choices=_zones,
        required=False,
        help_text=_("Pages show times in this zone. Usage is counted in UTC days."),
        label=_("Time zone"),
        widget=LongSelect,
    )
    theme = forms.ChoiceField(
        label=_("Theme"), choices=Theme.choices, help_text=_("System follows your device.")
    )


@require_http_methods(["GET", "POST"])
@role_required(Role.VIEWER)
def profile(request: HttpRequest) -> HttpResponseBase:
    user = _signed_in_user(request)
    saved: list[str] = []

    def save(data: Mapping[str, Any]) -> None:
        services.update_profile(user=user, actor=actor_of(request), **data)
        saved.append(data["theme"])

    page = FormPage(
        title=gettext("Profile"),
        text=_profile_text(user),
        form=ProfileForm,
        submit=gettext("Save profile"),
        save=save,
        done=gettext("Profile saved."),
        next=reverse("profile"),
        back=reverse("home"),
        initial={name: getattr(user, name) for name in services.PROFILE_FIELDS},
        crumbs=[(gettext("Profile"), "")],
        links=[
            (gettext("Notifications"), reverse("notification_settings")),
            (gettext("Change password"), reverse("password_change")),
        ],
    )
    response = form_page(request, page)
    if saved:
        remember_theme(request, response, saved[0])
    return response


def _profile_text(user: User) -> str:
    role = role_of(user)
    text = gettext("You are signed in as **%(user)s**, role %(role)s.") % {
        "user": user.username,
        "role": role.label,
    }
    return text if role == Role.ADMIN else f"{text} {gettext('An Admin assigns roles.')}"


class NewPasswordForm(PageForm):
    new = forms.CharField(
        label=_("New password"),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("At least eight characters, not a common password, not similar to your name."),
    )
    again = forms.CharField(
        label=_("New password again"), widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )

    def clean_again(self) -> str:
        again: str = self.cleaned_data["again"]
        if again != self.cleaned_data.get("new"):
            raise forms.ValidationError(gettext("The two new passwords do not match."))
        return again


class PasswordForm(NewPasswordForm):
    present = forms.CharField(
        label=_("Current password"), widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )
    field_order = ("present", "new", "again")


@form_view(Role.VIEWER)
def password_change(request: HttpRequest) -> FormPage:
    user = _signed_in_user(request)

    def save(data: Mapping[str, Any]) -> None:
        services.change_password(user=user, present=data["present"], new=data["new"], actor=actor_of(request))
        update_session_auth_hash(request, user)

    return FormPage(
        title=gettext("Change password"),
        text=gettext("**Other browsers must sign in again.** You stay signed in here."),
        form=PasswordForm,
        submit=gettext("Change password"),
        save=save,
        done=gettext("Password changed. Other browsers must sign in again."),
        crumbs=[(gettext("Profile"), reverse("profile")), (gettext("Password"), "")],
        one_column=True,
    )


def _signed_in_user(request: HttpRequest) -> User:
    """Return the signed-in person, loaded again for editing."""
    assert isinstance(request.user, User)
    return User.objects.get(pk=request.user.pk)


person_list = list_view(PEOPLE, Role.ADMIN)


class RoleForm(ReasonForm):
    role = forms.TypedChoiceField(
        label=_("Role"),
        choices=ROLE_CHOICES,
        coerce=lambda value: Role(int(value)),
        help_text=_("Viewers read. Operators manage sessions and slots. Admins manage everything."),
    )
    is_active = forms.BooleanField(
        required=False,
        label=_("Account open"),
        help_text=_("If closed, the person cannot sign in and their tokens are rejected."),
    )
    field_order = ("role", "is_active", "reason")


@form_view(Role.ADMIN)
def person_role(request: HttpRequest, pk: UUID) -> FormPage:
    person = get_object_or_404(User.objects.prefetch_related("groups"), pk=pk)
    admin = _signed_in_user(request)

    def save(data: Mapping[str, Any]) -> str:
        services.set_role(user=person, **data, by=admin)
        if not data["role"]:
            return gettext("%(person)s now has no role.") % {"person": person}
        return gettext("%(person)s now has the role %(role)s.") % {
            "person": person,
            "role": data["role"].label,
        }

    refusal = services.role_refusal(user=person, by=admin)
    text = gettext("Takes effect with the person's next request, also for their tokens.")
    return FormPage(
        title=gettext("Role of %(person)s") % {"person": person},
        text="" if refusal else text,
        form=RoleForm,
        submit=gettext("Save role"),
        save=save,
        done=str,
        refusal=refusal,
        initial={"role": int(role_of(person)), "is_active": person.is_active},
        crumbs=[
            (gettext("People"), reverse("person_list")),
            (gettext("Role of %(person)s") % {"person": person}, ""),
        ],
    )
