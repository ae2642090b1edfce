"""Domain and project pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from lcm.domain.roles import Role
from lcm.models import Domain
from lcm.models.people import slug_name
from lcm.pages.lists import DOMAINS, PROJECTS
from lcm.selectors import organisation
from lcm.selectors.organisation import changes_of
from lcm.selectors.sessions import running_in
from lcm.services import organisation as services
from lcm.web.access import role_required
from lcm.web.form_page import FormPage, FormResult, actor_of, form_page
from lcm.web.forms import PageForm, ReasonForm
from lcm.web.list_page import list_page

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


@require_GET
@role_required(Role.VIEWER)
def domain_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, DOMAINS)


@require_GET
@role_required(Role.VIEWER)
def project_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, PROJECTS)


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


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def domain_create(request: HttpRequest) -> HttpResponseBase:
    def save(data: Mapping[str, Any]) -> FormResult:
        domain = services.create_domain(**data, actor=actor_of(request))
        return FormResult(
            gettext("Domain %(domain)s created.") % {"domain": domain},
            reverse("domain_detail", args=[domain.pk]),
        )

    home = reverse("domain_list")
    crumbs = [(gettext("Domains"), home), (gettext("New domain"), "")]
    text = gettext(
        "**A domain is an organisation or a part of one.** Fair share divides capacity between domains first."
    )
    page = FormPage(
        gettext("New domain"), DomainForm, gettext("Create domain"), save, home, text, crumbs=crumbs
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def project_create(request: HttpRequest) -> HttpResponseBase:
    def save(data: Mapping[str, Any]) -> FormResult:
        project = services.create_project(**data, actor=actor_of(request))
        return FormResult(
            gettext("Project %(project)s created.") % {"project": project.path},
            reverse("project_detail", args=[project.pk]),
        )

    home = reverse("project_list")
    initial = {"domain": request.GET.get("domain", "")}
    crumbs = [(gettext("Projects"), home), (gettext("New project"), "")]
    page = FormPage(
        title=gettext("New project"),
        text=gettext("**Members of a project request sessions in it.** Add members on the project's page."),
        form=ProjectForm,
        submit=gettext("Create project"),
        save=save,
        back=home,
        initial=initial,
        crumbs=crumbs,
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def domain_edit(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    domain = get_object_or_404(Domain, pk=pk)
    home = reverse("domain_detail", args=[pk])

    def save(data: Mapping[str, Any]) -> FormResult:
        services.update_domain(domain=domain, actor=actor_of(request), **data)
        return FormResult(gettext("Domain %(domain)s saved.") % {"domain": domain}, home)

    initial = {"name": domain.name, "description": domain.description}
    crumbs = [(gettext("Domains"), reverse("domain_list")), (domain.name, home), (gettext("Edit"), "")]
    page = FormPage(
        gettext("Edit %(domain)s") % {"domain": domain},
        DomainForm,
        gettext("Save"),
        save,
        home,
        initial=initial,
        crumbs=crumbs,
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def project_edit(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    project = get_object_or_404(organisation.projects(), pk=pk)
    home = reverse("project_detail", args=[pk])

    def save(data: Mapping[str, Any]) -> FormResult:
        services.update_project(project=project, actor=actor_of(request), **data)
        return FormResult(gettext("Project %(project)s saved.") % {"project": project.path}, home)

    initial = {"name": project.name, "description": project.description}
    crumbs = [(gettext("Projects"), reverse("project_list")), (project.path, home), (gettext("Edit"), "")]
    page = FormPage(
        gettext("Edit %(project)s") % {"project": project},
        DomainForm,
        gettext("Save"),
        save,
        home,
        initial=initial,
        crumbs=crumbs,
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def domain_delete(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    domain = get_object_or_404(Domain, pk=pk)
    home = reverse("domain_detail", args=[pk])

    def save(data: Mapping[str, Any]) -> FormResult:
        services.delete_domain(domain=domain, reason=data["reason"], actor=actor_of(request))
        return FormResult(gettext("Domain %(domain)s deleted.") % {"domain": domain}, reverse("domain_list"))

    text = gettext("Only a domain without projects can be deleted.")
    crumbs = [(gettext("Domains"), reverse("domain_list")), (domain.name, home), (gettext("Delete"), "")]
    page = FormPage(
        gettext("Delete %(domain)s?") % {"domain": domain},
        ReasonForm,
        gettext("Delete domain"),
        save,
        home,
        text,
        True,
        crumbs=crumbs,
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def project_delete(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    project = get_object_or_404(organisation.projects(), pk=pk)
    home = reverse("project_detail", args=[pk])

    def save(data: Mapping[str, Any]) -> FormResult:
        services.delete_project(project=project, reason=data["reason"], actor=actor_of(request))
        return FormResult(
            gettext("Project %(project)s deleted.") % {"project": project.path}, reverse("project_list")
        )

    text = gettext("Only a project without sessions can be deleted. Its members keep their accounts.")
    crumbs = [(gettext("Projects"), reverse("project_list")), (project.path, home), (gettext("Delete"), "")]
    page = FormPage(
        gettext("Delete %(project)s?") % {"project": project.path},
        ReasonForm,
        gettext("Delete project"),
        save,
        home,
        text,
        True,
        crumbs=crumbs,
    )
    return form_page(request, page)
