"""Session pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from lcm.domain import lifecycle
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import LabletSession, Priority
from lcm.pages.bulk_actions import CANCEL
from lcm.pages.lists import SESSIONS
from lcm.selectors import names, sessions
from lcm.selectors.organisation import changes_of
from lcm.selectors.sessions import session_timeline
from lcm.services import sessions as services
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_page
from lcm.web.form_page import FormPage, FormResult, actor_of, form_page
from lcm.web.forms import LocalDateTimeField, NamedField, PageForm, ReasonForm, SuggestedField
from lcm.web.list_page import list_page
from lcm.web.session_location import session_location
from lcm.web.wording import NBSP, ago_text, clock_text, duration_text


@require_GET
@role_required(Role.VIEWER)
def session_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, SESSIONS)


@require_GET
@role_required(Role.VIEWER)
def session_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    session = get_object_or_404(sessions.sessions(), pk=pk)
    transitions, now = list(session.transitions.all()), timezone.now()
    context = {
        "session": session,
        "timeline": session_timeline(session, transitions, now=now),
        "waited": now - session.status_since,
        "is_ahead": session.starts_at > now,
        "place": session_location(session),
        "was_booked": session.starts_at > session.status_since,
        "is_over": session.ends_at <= now,
        "transitions": [step for step in transitions if step.reason],
        "kernels": session.kernels.all(),
        "changes": changes_of(session),
        "can_cancel": session.status in lifecycle.CANCEL_TARGETS,
        "cancel_stops": lifecycle.CANCEL_TARGETS.get(SessionStatus(session.status)) == SessionStatus.STOPPING,
        "can_extend": session.status in lifecycle.EXTENDABLE,
        "crumbs": [(gettext("Sessions"), reverse("session_list")), (session.short_id, "")],
    }
    return render(request, "sessions/detail.html", context)


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
    ends_at = LocalDateTimeField(label=_("Ends"))
    pool = SuggestedField(
        label=_("Pool"),
        suggest="pools",
        required=False,
        max_length=63,
        help_text=_("Default: the definition's pool."),
    )


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def session_create(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()

    def save(data: Mapping[str, Any]) -> FormResult:
        session = services.create_session(**data, actor=actor_of(request), now=now)
        return FormResult(
            gettext("Session %(session)s requested.") % {"session": session.short_id},
            reverse("session_detail", args=[session.pk]),
        )

    start = now.replace(second=0, microsecond=0)
    page = FormPage(
        title=gettext("New session"),
        text=gettext("LCM queues the session and starts the lab when a slot is assigned."),
        form=SessionForm,
        submit=gettext("Request session"),
        save=save,
        back=reverse("session_list"),
        initial={
            "definition": request.GET.get("definition", ""),
            "owner": request.user.get_username(),
            "starts_at": start,
            "ends_at": start + timedelta(hours=2),
        },
        crumbs=[(gettext("Sessions"), reverse("session_list")), (gettext("New session"), "")],
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def session_cancel(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    session = get_object_or_404(sessions.sessions(), pk=pk)
    here = reverse("session_detail", args=[pk])
    stops = lifecycle.CANCEL_TARGETS.get(SessionStatus(session.status)) == SessionStatus.STOPPING
    if stops:
        title = gettext("Stop session %(session)s?")
        submit = gettext("Stop session")
        effect = gettext("LCM tears down the lab. Unsaved work is lost.")
        result = gettext("Session %(session)s is stopping.")
    else:
        title = gettext("Cancel session %(session)s?")
        submit = gettext("Cancel session")
        effect = gettext("The session leaves the queue. Its lab has not started.")
        result = gettext("Session %(session)s cancelled.")

    def save(data: Mapping[str, Any]) -> FormResult:
        services.cancel_session(
            session=session, reason=data["reason"], actor=actor_of(request), now=timezone.now()
        )
        return FormResult(result % {"session": session.short_id}, here)

    page = FormPage(
        title=title % {"session": session.short_id},
        text=gettext("%(definition)s of %(owner)s. %(effect)s")
        % {"definition": session.definition, "owner": session.owner, "effect": effect},
        form=ReasonForm,
        submit=submit,
        dismiss=gettext("Keep session"),
        danger=True,
        save=save,
        back=here,
        crumbs=[(gettext("Sessions"), reverse("session_list")), (session.short_id, here), (submit, "")],
    )
    return form_page(request, page)


class ExtendForm(PageForm):
    ends_at = LocalDateTimeField(label=_("New end"))
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_("Recorded in the change log under your name."),
    )


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def session_extend(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    session = get_object_or_404(sessions.sessions(), pk=pk)
    here = reverse("session_detail", args=[pk])

    def save(data: Mapping[str, Any]) -> FormResult:
        services.extend_session(session=session, **data, actor=actor_of(request), now=timezone.now())
        return FormResult(gettext("Session %(session)s extended.") % {"session": session.short_id}, here)

    page = FormPage(
        title=gettext("Extend session %(session)s") % {"session": session.short_id},
        text=_time_left_text(session, timezone.now()),
        form=ExtendForm,
        submit=gettext("Extend session"),
        save=save,
        back=here,
        initial={"ends_at": min(session.ends_at + timedelta(hours=1), session.latest_end)},
        crumbs=[
            (gettext("Sessions"), reverse("session_list")),
            (session.short_id, here),
            (gettext("Extend"), ""),
        ],
    )
    return form_page(request, page)


def _time_left_text(session: LabletSession, now: datetime) -> str:
    """Return “The session ends in 5 min, at 03:59. It can run until 11:54, 8 h from now.”"""
    end, latest = session.ends_at, session.latest_end
    text = gettext("The session was due to end %(when)s, at %(at)s.")
    if end > now:
        text = gettext("The session ends %(when)s, at %(at)s.")
    text %= {"when": ago_text(end - now), "at": clock_text(end)}
    if latest <= now:
        return f"{text} {gettext('It cannot be extended further.')}"
    left = duration_text(latest - now).replace(" ", NBSP)
    rest = gettext("It can run until %(at)s, %(duration)s from now.")
    return f"{text} {rest % {'at': clock_text(latest), 'duration': left}}"


@require_POST
@role_required(Role.OPERATOR)
def session_bulk_cancel(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, CANCEL.name)
