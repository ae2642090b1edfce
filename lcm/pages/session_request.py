"""The form that requests a session, with a preview of where the session would run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.domain.errors import InvalidInput
from lcm.domain.roles import Role
from lcm.extensions import Extension
from lcm.models import Priority
from lcm.selectors import names
from lcm.services import sessions as services
from lcm.web.access import role_required
from lcm.web.form_page import FormPage, actor_of, form_view
from lcm.web.forms import LocalDateTimeField, NamedField, PageForm, SuggestedField
from lcm.web.wording import Plural

CUSTOM = "custom"
HOURS = (1, 2, 4)
_HOURS = Plural(ngettext_lazy("%(count)s hour", "%(count)s hours"))


def _durations() -> list[tuple[str, Any]]:
    return [*((str(hours), _HOURS.text(hours)) for hours in HOURS), (CUSTOM, gettext("Custom"))]


class SessionForm(PageForm):
    definition = NamedField(
        label=_("Definition"),
        find=names.find_definition,
        suggest="definitions",
        help_text=_("Name of an active definition."),
    )
    project = NamedField(
        label=_("Project"),
        find=names.find_project,
        suggest="projects",
        help_text=_("For example “academy / ccna”."),
    )
    owner = NamedField(
        label=_("Owner"), find=names.find_person, suggest="people", help_text=_("A member of that project.")
    )
    priority = forms.TypedChoiceField(
        label=_("Priority"), choices=Priority.choices, coerce=int, initial=Priority.NORMAL
    )
    starts_at = LocalDateTimeField(label=_("Starts"))
    duration = forms.ChoiceField(
        label=_("Duration"), choices=_durations, widget=forms.RadioSelect, initial=str(HOURS[1])
    )
    ends_at = LocalDateTimeField(label=_("Ends"), required=False)
    pool = SuggestedField(
        label=_("Pool"),
        suggest="pools",
        required=False,
        max_length=63,
        help_text=_("Default: the definition's pool."),
    )
    optional_words = {"ends_at": _("for a custom duration")}

    def clean(self) -> dict[str, Any]:
        """Compute the end from the duration."""
        data = self.cleaned_data
        duration = data.pop("duration", "")
        if duration and duration != CUSTOM:
            self.errors.pop("ends_at", None)
            if data.get("starts_at"):
                self._set_end(data["starts_at"], timedelta(hours=int(duration)))
        elif duration and data.get("ends_at") is None and "ends_at" not in self.errors:
            self.add_error("ends_at", gettext("Enter the end of the timeslot."))
        return data

    def _set_end(self, starts_at: datetime, duration: timedelta) -> None:
        try:
            self.cleaned_data["ends_at"] = starts_at + duration
        except OverflowError:
            self.add_error("starts_at", gettext("This time is out of range."))


@form_view(Role.OPERATOR)
def session_create(request: HttpRequest) -> FormPage | HttpResponseBase:
    now = timezone.now()
    start = now.replace(second=0, microsecond=0)
    page = FormPage(
        title=gettext("New session"),
        text=gettext("LCM queues the session and starts the lab when a slot is assigned."),
        form=SessionForm,
        submit=gettext("Request session"),
        save=lambda data: services.create_session(**data, actor=actor_of(request), now=now),
        done=lambda session: gettext("Session %(session)s requested.") % {"session": session.short_id},
        next=lambda session: reverse("session_detail", args=[session.pk]),
        back=reverse("session_list"),
        initial={
            "definition": request.GET.get("definition", ""),
            "owner": request.user.get_username(),
            "starts_at": start,
            "ends_at": start + timedelta(hours=HOURS[1]),
        },
        crumbs=[(gettext("Sessions"), reverse("session_list")), (gettext("New session"), "")],
        template="sessions/new.html",
    )
    if "check" not in request.POST:
        return page
    form = SessionForm(request.POST)
    context = {"page": page, "form": form, "crumbs": page.crumbs, "previews": _previews(form, now)}
    return render(request, page.template, context)


@require_GET
@role_required(Role.OPERATOR)
def session_preview(request: HttpRequest) -> HttpResponseBase:
    """Return what the request in the form would lead to, as a part of the form."""
    previews = _previews(SessionForm(request.GET), timezone.now())
    return render(request, "sessions/new.html#preview", {"previews": previews})


def _previews(form: SessionForm, now: datetime) -> Sequence[SafeString]:
    """Return the previews of the request; none while its definition or timeslot is missing or invalid."""
    form.is_valid()
    data = form.cleaned_data
    starts_at, ends_at = data.get("starts_at"), data.get("ends_at")
    if not (data.get("definition") and starts_at and ends_at and starts_at < ends_at):
        return []
    try:
        draft = services.draft_session(
            definition=data["definition"],
            owner=data.get("owner"),
            project=data.get("project"),
            starts_at=starts_at,
            ends_at=ends_at,
            priority=data.get("priority", Priority.NORMAL),
            pool=data.get("pool", ""),
            now=now,
        )
        services.check_timeslot(draft, now=now)
    except InvalidInput:
        return []
    return [read(draft, now) for read in Extension.installed().request_previews]
