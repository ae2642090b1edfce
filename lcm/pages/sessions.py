"""Session pages."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.db.snapshot import consistent_reads
from lcm.domain import lifecycle
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import LabletSession
from lcm.pages.bulk_actions import CANCEL, EXTEND, PRIORITY
from lcm.pages.lists import SESSIONS
from lcm.selectors import sessions
from lcm.selectors.organisation import changes_of
from lcm.selectors.sessions import session_timeline
from lcm.services import sessions as services
from lcm.web.access import htmx_of, role_required
from lcm.web.bulk_actions import bulk_view
from lcm.web.crumbs import session_crumbs
from lcm.web.form_page import FormPage, form_view, service_call
from lcm.web.forms import LocalDateTimeField, PageForm
from lcm.web.list_page import list_view
from lcm.web.session_location import session_location
from lcm.web.wording import NBSP, ago_text, clock_text, duration_text

session_list = list_view(SESSIONS)


@require_GET
@role_required(Role.VIEWER)
def session_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Show a session. A refresh returns everything that changes, in one response as of one moment."""
    with consistent_reads():
        return _session_page(request, pk, is_refresh=bool(htmx_of(request)))


def _session_page(request: HttpRequest, pk: UUID, *, is_refresh: bool) -> HttpResponseBase:
    session = get_object_or_404(sessions.sessions().prefetch_related("kernels"), pk=pk)
    transitions, now = list(session.transitions.all()), timezone.now()
    place = session_location(session)
    context = {
        "session": session,
        "now": now,
        "is_refresh": is_refresh,
        "refresh": not session.is_final,
        # The first response of a waiting session has no wait reasons.
        "at_once": not is_refresh and session.status == SessionStatus.PENDING,
        "timeline": session_timeline(session, transitions, now=now),
        "waited": now - session.status_since,
        "is_ahead": session.starts_at > now,
        "place": place,
        # “How to connect” shows the states of nodes that have a slot.
        "shows_states": session.is_final or not (place and place.slot),
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
    return render(request, "sessions/live.html" if is_refresh else "sessions/detail.html", context)


@form_view(Role.OPERATOR)
def session_cancel(request: HttpRequest, pk: UUID) -> FormPage:
    session = get_object_or_404(sessions.sessions(), pk=pk)
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
    return FormPage(
        title=title % {"session": session.short_id},
        text=gettext("%(definition)s of %(owner)s. %(effect)s")
        % {"definition": session.definition, "owner": session.owner, "effect": effect},
        submit=submit,
        danger=True,
        save=service_call(request, services.cancel_session, session=session),
        done=result % {"session": session.short_id},
        dismiss=gettext("Keep session"),
        crumbs=session_crumbs(session, submit),
    )


class ExtendForm(PageForm):
    ends_at = LocalDateTimeField(label=_("New end"))
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_("Recorded in the change log under your name."),
    )


@form_view(Role.OPERATOR)
def session_extend(request: HttpRequest, pk: UUID) -> FormPage:
    session = get_object_or_404(sessions.sessions(), pk=pk)
    return FormPage(
        title=gettext("Extend session %(session)s") % {"session": session.short_id},
        text=_time_left_text(session, timezone.now()),
        form=ExtendForm,
        submit=gettext("Extend session"),
        save=service_call(request, services.extend_session, session=session),
        done=gettext("Session %(session)s extended.") % {"session": session.short_id},
        initial={"ends_at": min(session.ends_at + timedelta(hours=1), session.latest_end)},
        crumbs=session_crumbs(session, gettext("Extend")),
    )


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


session_bulk_extend = bulk_view(EXTEND, Role.OPERATOR)
session_bulk_priority = bulk_view(PRIORITY, Role.OPERATOR)
session_bulk_cancel = bulk_view(CANCEL, Role.OPERATOR)
