"""Pages that create people and links to set a password. A link is shown once, on its creation."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from lcm.domain.errors import InvalidInput
from lcm.domain.roles import Role
from lcm.events.mail_client import mail_is_configured
from lcm.models import Project, User
from lcm.selectors.organisation import project_choices
from lcm.services.new_people import NewPerson, create_people
from lcm.services.password_links import (
    PasswordLink,
    create_password_link,
    password_link_refusal,
    send_password_link,
)
from lcm.services.people_import import COLUMNS, import_people, read_people
from lcm.templatetags.lcm import clock
from lcm.web.access import role_required
from lcm.web.export import csv_text
from lcm.web.form_page import FormPage, actor_of, form_view, save_form
from lcm.web.forms import EitherFile, EitherText, PageForm, add_errors

ROLE_CHOICES = [(int(role), role.label if role else _("None")) for role in Role]


class PersonForm(PageForm):
    username = forms.CharField(
        label=_("User name"), max_length=150, help_text=_("Letters, digits and @ . + - _; for signing in.")
    )
    email = forms.EmailField(label=_("Email"), required=False)
    first_name = forms.CharField(label=_("First name"), max_length=150, required=False)
    last_name = forms.CharField(label=_("Last name"), max_length=150, required=False)
    role = forms.TypedChoiceField(
        label=_("Role"),
        choices=ROLE_CHOICES,
        coerce=lambda value: Role(int(value)),
        help_text=_(
            "Viewers read. Operators manage sessions and slots. Admins manage everything. "
            "People without a role can own sessions but cannot open pages."
        ),
    )
    projects = forms.MultipleChoiceField(
        label=_("Projects"),
        required=False,
        choices=project_choices,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Members can request sessions in a project."),
    )

    def clean_projects(self) -> tuple[Project, ...]:
        chosen = self.cleaned_data["projects"]
        return tuple(Project.objects.select_related("domain").filter(pk__in=chosen)) if chosen else ()


@form_view(Role.ADMIN)
def person_create(request: HttpRequest) -> FormPage:
    return FormPage(
        title=gettext("Add person"),
        text=gettext("**The next page shows a link with which the person sets a password.** %(mail)s")
        % {"mail": _mail_text()},
        form=PersonForm,
        submit=gettext("Add person"),
        save=lambda data: create_people(
            people=[NewPerson(**data)], actor=actor_of(request), now=timezone.now()
        ),
        show=lambda links: _show_once(request, links[0]),
        initial={"role": int(Role.VIEWER)},
        crumbs=_crumbs(gettext("Add person")),
    )


@form_view(Role.ADMIN)
def person_password_link(request: HttpRequest, pk: UUID) -> FormPage:
    person, admin = get_object_or_404(User, pk=pk), request.user
    assert isinstance(admin, User)
    refusal = password_link_refusal(user=person, by=admin)
    title = gettext("Password link for %(person)s") % {"person": person}
    text = gettext(
        "**The next page shows a link with which %(person)s sets a new password.** "
        "The present password works until then; earlier links end now. %(mail)s"
    )
    return FormPage(
        title=title,
        text="" if refusal else text % {"person": person, "mail": _mail_text()},
        submit=gettext("Create link"),
        save=lambda data: create_password_link(user=person, **data, by=admin, now=timezone.now()),
        show=lambda link: _show_once(request, link),
        refusal=refusal,
        crumbs=_crumbs(title),
    )


def _mail_text() -> str:
    if mail_is_configured():
        return gettext("LCM also sends the link by email if the account has an address.")
    return gettext("LCM sends no email: pass the link on yourself.")


def _url_of(request: HttpRequest, link: PasswordLink) -> str:
    return request.build_absolute_uri(reverse("set_password", args=[link.uid, link.token]))


def _show_once(request: HttpRequest, link: PasswordLink) -> HttpResponseBase:
    url = _url_of(request, link)
    sent = send_password_link(user=link.user, url=url, expires_at=clock(link.expires_at))
    context = {
        "link": link,
        "url": url,
        "sent": sent,
        "not_sent": mail_is_configured() and bool(link.user.email) and not sent,
        "crumbs": _crumbs(link.user.username),
    }
    response = render(request, "people/link.html", context)
    response["Cache-Control"] = "no-store"
    return response


class ImportForm(PageForm):
    """First step: the people as a file or text."""

    use_required_attribute = False
    file = EitherFile(label=_("CSV file"), help_text=_("Comma or semicolon, UTF-8, up to 1,000 people."))
    text = EitherText(
        label=_("Or paste the lines"),
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "class": "input mono", "spellcheck": "false"}),
        help_text=_("The first line names the columns: %(columns)s.") % {"columns": ", ".join(COLUMNS)},
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("file"):
            data["content"] = data["file"].read()
        elif (data.get("text") or "").strip():
            data["content"] = data["text"]
        elif not self.errors:
            raise forms.ValidationError(gettext("Choose a file or paste the lines."))
        return data


class ConfirmForm(PageForm):
    """Second step: the text that was checked."""

    checked = forms.CharField(widget=forms.HiddenInput, strip=False)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def person_import(request: HttpRequest) -> HttpResponseBase:
    """Show the empty form or the preview, or create the people."""
    if request.method == "GET":
        return _show_import(request, ImportForm())
    if "checked" in request.POST:
        return _create(request)
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return _show_import(request, form, status=422)
    content = form.cleaned_data["content"]
    try:
        rows = read_people(content=content)
    except InvalidInput as error:
        add_errors(form, error)
        return _show_import(request, form, status=422)
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    return _show_import(request, ConfirmForm(initial={"checked": text}), rows=rows)


def _create(request: HttpRequest) -> HttpResponseBase:
    form = ConfirmForm(request.POST)
    links = save_form(
        form,
        lambda data: import_people(content=data["checked"], actor=actor_of(request), now=timezone.now()),
    )
    if links is None:
        return _show_import(request, form, rows=_rows(request.POST.get("checked", "")), status=422)
    context = {
        "count": len(links),
        "csv": csv_text(
            [
                ("username", "email", "link"),
                *((each.user.username, each.user.email, _url_of(request, each)) for each in links),
            ]
        ),
        "expires_at": links[0].expires_at,
        "crumbs": _import_crumbs(),
    }
    response = render(request, "people/imported.html", context)
    response["Cache-Control"] = "no-store"
    return response


def _rows(text: str) -> list[Any]:
    try:
        return read_people(content=text)
    except InvalidInput:
        return []


def _show_import(
    request: HttpRequest, form: PageForm, *, rows: list[Any] | None = None, status: int = 200
) -> HttpResponseBase:
    wrong = sum(bool(row.problems) for row in rows or ())
    context = {"form": form, "rows": rows, "wrong": wrong, "crumbs": _import_crumbs()}
    return render(request, "people/import.html", context, status=status)


def _import_crumbs() -> list[tuple[str, str]]:
    return _crumbs(gettext("Import"))


def _crumbs(last: str) -> list[tuple[str, str]]:
    return [(gettext("People"), reverse("person_list")), (last, "")]
