"""Lookup of objects by the names people type, and suggestions for them."""

from __future__ import annotations

import re
from uuid import UUID

from django.db.models import Q

from lcm.models import DefinitionStatus, LabletDefinition, Project, User

SUGGESTIONS = 20
_ID_START = re.compile(r"^[0-9a-f]{4,32}$")


def by_id(text: str, field: str = "pk") -> Q:
    """Return a filter for ids that start with the text; it matches nothing if the text is no id prefix."""
    start = text.lower().replace("-", "")
    if not _ID_START.match(start):
        return Q(pk__in=[])
    first, last = UUID(start.ljust(32, "0")), UUID(start.ljust(32, "f"))
    return Q(**{f"{field}__gte": first, f"{field}__lte": last})


def find_definition(text: str) -> LabletDefinition | None:
    """Find a definition by `name v1.0`, or by name alone: then the newest active version."""
    name, _, version = text.partition(" v")
    rows = LabletDefinition.objects.select_related("current_revision").filter(name=name.strip())
    if version:
        return rows.filter(version=version.strip()).first()
    return rows.filter(status=DefinitionStatus.ACTIVE).order_by("-created_at").first()


def find_project(text: str) -> Project | None:
    """Find a project by `domain / project`, or by its name alone if only one domain has it."""
    domain, slash, name = (part.strip() for part in text.rpartition("/"))
    rows = Project.objects.select_related("domain").filter(name=name)
    if slash:
        return rows.filter(domain__name=domain).first()
    found = list(rows[:2])
    return found[0] if len(found) == 1 else None


def find_person(text: str) -> User | None:
    return User.objects.filter(username=text.strip(), is_active=True).first()


def suggest_definitions(text: str) -> list[str]:
    rows = LabletDefinition.objects.filter(
        status=DefinitionStatus.ACTIVE, name__icontains=text.split(" v")[0]
    )
    return [f"{name} v{version}" for name, version in rows.values_list("name", "version")[:SUGGESTIONS]]


def suggest_projects(text: str) -> list[str]:
    part = text.rpartition("/")[2].strip()
    rows = Project.objects.filter(Q(name__icontains=part) | Q(domain__name__icontains=part))
    return [f"{domain} / {name}" for domain, name in rows.values_list("domain__name", "name")[:SUGGESTIONS]]


def suggest_people(text: str) -> list[str]:
    rows = User.objects.filter(username__icontains=text, is_active=True)
    return list(rows.values_list("username", flat=True)[:SUGGESTIONS])
