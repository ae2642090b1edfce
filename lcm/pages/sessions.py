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
        "crumbs": [("Sessions", reverse("session_list")), (session.short_id, "")],
    }
    return render(request, "sessions/detail.html", context)


class SessionForm(PageForm):
    definition = NamedField(
        find=names.find_definition, suggest="definitions", help_text="Name of an active definition."
    )
    project = NamedField(
        find=names.find_project,
        suggest="projects",
        help_text="For example “academy / ccna”.",
    )
    owner = NamedField(find=names.find_person, suggest="people", help_text="A member of that project.")
    priority = forms.TypedChoiceField(choices=Priority.choices, coerce=int, initial=Priority.NORMAL)
    starts_at = LocalDateTimeField(label="Starts")
    ends_at = LocalDateTimeField(label="Ends")
    pool = SuggestedField(
        suggest="pools", required=False, max_length=63, help_text="Default: the definition's pool."
    )


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def session_create(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()

    def save(data: Mapping[str, Any]) -> FormResult:
        session = services.create_session(**data, actor=actor_of(request), now=now)
        return FormResult(
            f"Session {session.short_id} requested.", reverse("session_detail", args=[session.pk])
        )

    start = now.replace(second=0, microsecond=0)
    page = FormPage(
        title="New session",
        text="LCM queues the session and starts the lab when a slot is assigned.",
        form=SessionForm,
        submit="Request session",
        save=save,
        back=reverse("session_list"),
        initial={
            "definition": request.GET.get("definition", ""),
            "owner": request.user.get_username(),
            "starts_at": start,
            "ends_at": start + timedelta(hours=2),
        },
        crumbs=[("Sessions", reverse("session_list")), ("New session", "")],
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def session_cancel(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    session = get_object_or_404(sessions.sessions(), pk=pk)
    here = reverse("session_detail", args=[pk])
    stops = lifecycle.CANCEL_TARGETS.get(SessionStatus(session.status)) == SessionStatus.STOPPING
    if stops:
        title, submit = f"Stop session {session.short_id}?", "Stop session"
        effect = "LCM tears down the lab. Unsaved work is lost."
        result = f"Session {session.short_id} is stopping."
    else:
        title, submit = f"Cancel session {session.short_id}?", "Cancel session"
        effect = "The session leaves the queue. Its lab has not started."
        result = f"Session {session.short_id} cancelled."

    def save(data: Mapping[str, Any]) -> FormResult:
        services.cancel_session(
            session=session, reason=data["reason"], actor=actor_of(request), now=timezone.now()
        )
        return FormResult(result, here)

    page = FormPage(
        title=title,
        text=f"{session.definition} of {session.owner}. {effect}",
        form=ReasonForm,
        submit=submit,
        dismiss="Keep session",
        danger=True,
        save=save,
        back=here,
        crumbs=[("Sessions", reverse("session_list")), (session.short_id, here), (submit, "")],
    )
    return form_page(request, page)


class ExtendForm(PageForm):
    ends_at = LocalDateTimeField(label="New end")
    reason = forms.CharField(
        max_length=500, required=False, help_text="Recorded in the change log under your name."
    )


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def session_extend(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    session = get_object_or_404(sessions.sessions(), pk=pk)
    here = reverse("session_detail", args=[pk])

    def save(data: Mapping[str, Any]) -> FormResult:
        services.extend_session(session=session, **data, actor=actor_of(request), now=timezone.now())
        return FormResult(f"Session {session.short_id} extended.", here)

    page = FormPage(
        title=f"Extend session {session.short_id}",
        text=_time_left_text(session, timezone.now()),
        form=ExtendForm,
        submit="Extend session",
        save=save,
        back=here,
        initial={"ends_at": min(session.ends_at + timedelta(hours=1), session.latest_end)},
        crumbs=[("Sessions", reverse("session_list")), (session.short_id, here), ("Extend", "")],
    )
    return form_page(request, page)


def _time_left_text(session: LabletSession, now: datetime) -> str:
    """Return “The session ends in 5 min, at 03:59. It can run until 11:54, 8 h from now.”"""
    end, latest = session.ends_at, session.latest_end
    when, at = ago_text(end - now), clock_text(end)
    text = f"The session was due to end {when}, at {at}."
    if end > now:
        text = f"The session ends {when}, at {at}."
    if latest <= now:
        return f"{text} It cannot be extended further."
    left = duration_text(latest - now).replace(" ", NBSP)
    return f"{text} It can run until {clock_text(latest)}, {left} from now."


@require_POST
@role_required(Role.OPERATOR)
def session_bulk_cancel(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, CANCEL.name)
