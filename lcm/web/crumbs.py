"""Breadcrumbs of pages below the page of an object."""

from __future__ import annotations

from typing import TypeAlias

from django.urls import reverse
from django.utils.translation import gettext as _

from lcm.models import Domain, LabletDefinition, LabletSession, Project

Crumbs: TypeAlias = list[tuple[str, str]]


def session_crumbs(session: LabletSession, last: str) -> Crumbs:
    page = reverse("session_detail", args=[session.pk])
    return [(_("Sessions"), reverse("session_list")), (session.short_id, page), (last, "")]


def definition_crumbs(definition: LabletDefinition, last: str) -> Crumbs:
    page = reverse("definition_detail", args=[definition.pk])
    return [(_("Definitions"), reverse("definition_list")), (str(definition), page), (last, "")]


def domain_crumbs(domain: Domain, last: str) -> Crumbs:
    page = reverse("domain_detail", args=[domain.pk])
    return [(_("Domains"), reverse("domain_list")), (domain.name, page), (last, "")]


def project_crumbs(project: Project, last: str) -> Crumbs:
    page = reverse("project_detail", args=[project.pk])
    return [(_("Projects"), reverse("project_list")), (project.path, page), (last, "")]
