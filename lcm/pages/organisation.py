"""Domain and project pages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.models import Domain
from lcm.models.people import slug_name
from lcm.pages.lists import DOMAINS, PROJECTS
from lcm.selectors import organisation
from lcm.selectors.organisation import changes_of
from lcm.selectors.sessions import running_in
from lcm.services import organisation as services
from lcm.web.access import role_required
from lcm.web.crumbs import domain_crumbs, project_crumbs
from lcm.web.form_page import FormPage, actor_of, form_view
from lcm.web.forms import PageForm
from lcm.web.list_page import list_view

PROJECTS_SHOWN = 100


class DomainForm(PageForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=63,
        validators=[slug_name],
        help_text=_("Lowercase letters, digits and hyphens."),
    )
    description = forms.CharField(label=_("Description"), max_length=300, required=False)


class ProjectForm(DomainForm):
    domain = forms.ModelChoiceField(
        Domain.objects.all(), label=_("Domain"), help_text=_("Cannot be changed later.")
    )
    field_order = ["domain", "name", "description"]


domain_list = list_view(DOMAINS)
project_list = list_view(PROJECTS)


@require_GET
@role_required(Role.VIEWER)
def domain_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    domain: Any = get_object_or_404(organisation.domains(), pk=pk)
    context = {
        "domain": domain,
        "people": organisation.people_in(domain),
        "running": running_in(project__domain=domain),
        "projects": organisation.projects().filter(domain=domain)[:PROJECTS_SHOWN],
        "hidden_projects": max(domain.project_count - PROJECTS_SHOWN, 0),
        "changes": changes_of(domain),
        "crumbs": [(gettext("Domains"), reverse("domain_list")), (domain.name, "")],
    }
    return render(request, "organisation/domain.html", context)


@form_view(Role.ADMIN)
def domain_create(request: HttpRequest) -> FormPage:
    return FormPage(
        title=gettext("New domain"),
        text=gettext(
            "**A domain is an organisation or a part of one.** "
            "Fair share divides capacity between domains first."
        ),
        form=DomainForm,
        submit=gettext("Create domain"),
        save=lambda data: services.create_domain(**data, actor=actor_of(request)),
        done=lambda domain: gettext("Domain %(domain)s created.") % {"domain": domain},
        next=lambda domain: reverse("domain_detail", args=[domain.pk]),
        crumbs=[(gettext("Domains"), reverse("domain_list")), (gettext("New domain"), "")],
    )


@form_view(Role.ADMIN)
def project_create(request: HttpRequest) -> FormPage:
    return FormPage(
        title=gettext("New project"),
        text=gettext("**Members of a project request sessions in it.** Add members on the project's page."),
        form=ProjectForm,
        submit=gettext("Create project"),
        save=lambda data: services.create_project(**data, actor=actor_of(request)),
        done=lambda project: gettext("Project %(project)s created.") % {"project": project.path},
        next=lambda project: reverse("project_detail", args=[project.pk]),
        initial={"domain": request.GET.get("domain", "")},
        crumbs=[(gettext("Projects"), reverse("project_list")), (gettext("New project"), "")],
    )


@form_view(Role.ADMIN)
def domain_edit(request: HttpRequest, pk: UUID) -> FormPage:
    domain = get_object_or_404(Domain, pk=pk)
    return FormPage(
        title=gettext("Edit %(domain)s") % {"domain": domain},
        form=DomainForm,
        submit=gettext("Save"),
        save=lambda data: services.update_domain(domain=domain, actor=actor_of(request), **data),
        done=lambda _saved: gettext("Domain %(domain)s saved.") % {"domain": domain},
        initial={"name": domain.name, "description": domain.description},
        crumbs=domain_crumbs(domain, gettext("Edit")),
    )


@form_view(Role.ADMIN)
def project_edit(request: HttpRequest, pk: UUID) -> FormPage:
    project = get_object_or_404(organisation.projects(), pk=pk)
    return FormPage(
        title=gettext("Edit %(project)s") % {"project": project},
        form=DomainForm,
        submit=gettext("Save"),
        save=lambda data: services.update_project(project=project, actor=actor_of(request), **data),
        done=lambda _saved: gettext("Project %(project)s saved.") % {"project": project.path},
        initial={"name": project.name, "description": project.description},
        crumbs=project_crumbs(project, gettext("Edit")),
    )


@form_view(Role.ADMIN)
def domain_delete(request: HttpRequest, pk: UUID) -> FormPage:
    domain = get_object_or_404(Domain, pk=pk)
    return FormPage(
        title=gettext("Delete %(domain)s?") % {"domain": domain},
        text=gettext("Only a domain without projects can be deleted."),
        submit=gettext("Delete domain"),
        danger=True,
        save=lambda data: services.delete_domain(domain=domain, **data, actor=actor_of(request)),
        done=gettext("Domain %(domain)s deleted.") % {"domain": domain},
        next=reverse("domain_list"),
        crumbs=domain_crumbs(domain, gettext("Delete")),
    )


@form_view(Role.ADMIN)
def project_delete(request: HttpRequest, pk: UUID) -> FormPage:
    project = get_object_or_404(organisation.projects(), pk=pk)
    return FormPage(
        title=gettext("Delete %(project)s?") % {"project": project.path},
        text=gettext("Only a project without sessions can be deleted. Its members keep their accounts."),
        submit=gettext("Delete project"),
        danger=True,
        save=lambda data: services.delete_project(project=project, **data, actor=actor_of(request)),
        done=gettext("Project %(project)s deleted.") % {"project": project.path},
        next=reverse("project_list"),
        crumbs=project_crumbs(project, gettext("Delete")),
    )
