"""Project page and member management."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from lcm.domain.roles import Role
from lcm.models import Project, User
from lcm.pages.lists import members_list
from lcm.selectors import names, organisation
from lcm.selectors.organisation import changes_of
from lcm.selectors.sessions import running_in, sessions
from lcm.services import organisation as services
from lcm.web.access import role_required
from lcm.web.crumbs import project_crumbs
from lcm.web.form_page import (
    FormPage,
    FormResult,
    actor_of,
    form_view,
    redirect_with_message,
    save_form,
)
from lcm.web.forms import NamedField, PageForm
from lcm.web.list_page import list_page

MEMBERS_SHOWN = 100
SESSIONS_SHOWN = 8


class MemberForm(PageForm):
    person = NamedField(find=names.find_person, suggest="people", label=_("User name"))


def _get(pk: UUID) -> Any:
    return get_object_or_404(organisation.projects(), pk=pk)


@require_GET
@role_required(Role.VIEWER)
def project_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    return _project_page(request, _get(pk), MemberForm())


def _project_page(
    request: HttpRequest, project: Any, form: MemberForm, *, status: int = 200
) -> HttpResponseBase:
    context = {
        "project": project,
        "members": organisation.members_of(project)[:MEMBERS_SHOWN],
        "hidden_members": max(project.member_count - MEMBERS_SHOWN, 0),
        "running": running_in(project=project),
        "sessions": sessions().filter(project=project).order_by("-created_at", "-pk")[:SESSIONS_SHOWN],
        "sessions_shown": SESSIONS_SHOWN,
        "changes": changes_of(project),
        "form": form,
        "crumbs": [(gettext("Projects"), reverse("project_list")), (project.path, "")],
    }
    return render(request, "organisation/project.html", context, status=status)


@require_GET
@role_required(Role.VIEWER)
def member_list(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    project: Project = _get(pk)
    crumbs = project_crumbs(project, gettext("Members"))
    return list_page(request, members_list(project), crumbs=crumbs)


@require_POST
@role_required(Role.ADMIN)
def member_add(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Add the person that the form names; an unknown name stays in the form with its error."""
    project = _get(pk)

    def save(data: Mapping[str, Any]) -> FormResult:
        services.add_member(project=project, user=data["person"], actor=actor_of(request))
        message = gettext("%(person)s added to %(project)s.") % {
            "person": data["person"],
            "project": project.path,
        }
        return FormResult(message, reverse("project_detail", args=[pk]))

    form = MemberForm(request.POST)
    done = save_form(form, save)
    return redirect_with_message(request, done) if done else _project_page(request, project, form, status=422)


@form_view(Role.ADMIN)
def member_remove(request: HttpRequest, pk: UUID, user_pk: UUID) -> FormPage:
    project = _get(pk)
    person = get_object_or_404(User, pk=user_pk)
    return FormPage(
        title=gettext("Remove %(person)s from %(project)s?") % {"person": person, "project": project.path},
        text=gettext(
            "They can no longer request sessions in it. People with active sessions cannot be removed."
        ),
        submit=gettext("Remove member"),
        danger=True,
        save=lambda data: services.remove_member(
            project=project, user=person, **data, actor=actor_of(request)
        ),
        done=gettext("%(person)s removed from %(project)s.") % {"person": person, "project": project.path},
        crumbs=project_crumbs(project, gettext("Remove member")),
    )
