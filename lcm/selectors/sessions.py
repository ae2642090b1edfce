"""Queries of sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Count, Q, QuerySet

from lcm.domain.lifecycle import ACTIVE, SessionStatus
from lcm.models import Domain, LabletDefinition, LabletSession, Project, User
from lcm.selectors.names import by_id

# A search first finds at most this many definitions, people and projects, then their sessions by index.
MAX_NAMES = 200
# Functions that return extra fields of one session; apps add theirs when they are ready.
DETAILS: list[Callable[[LabletSession], dict[str, Any]]] = []


def sessions() -> QuerySet[LabletSession]:
    """Return sessions with the related objects that lists show."""
    return LabletSession.objects.select_related("definition", "owner", "project__domain", "revision").defer(
        "definition__topology_yaml",
        "definition__nodes",
        "definition__links",
        "revision__port_template",
        "revision__before",
        "revision__aggregate",
    )


def details_of(session: LabletSession) -> dict[str, Any]:
    """Return the fields that other apps add to one session. Lists omit them: they cost queries per row."""
    return {name: value for read in DETAILS for name, value in read(session).items()}


def active_by_status() -> dict[str, int]:
    rows = (
        LabletSession.objects.filter(status__in=ACTIVE).order_by().values_list("status").annotate(Count("pk"))
    )
    counts = dict(rows)
    return {status.value: counts.get(status, 0) for status in ACTIVE}


def running_in(**where: Any) -> int:
    """Return the number of running sessions that match the filters."""
    return LabletSession.objects.filter(status=SessionStatus.RUNNING, **where).count()


def search_sessions(queryset: QuerySet[LabletSession], text: str) -> QuerySet[LabletSession]:
    """Filter sessions by id prefix, or by name of definition, owner, project or domain."""
    found = by_id(text)
    for field, names in (
        ("definition", LabletDefinition.objects.filter(name__icontains=text)),
        ("owner", User.objects.filter(username__icontains=text)),
        ("project", Project.objects.filter(Q(name__icontains=text) | Q(domain__name__icontains=text))),
    ):
        ids = list(names.order_by().values_list("pk", flat=True)[:MAX_NAMES])
        if ids:
            found |= Q(**{f"{field}__in": ids})
    return queryset.filter(found)


def domains_for_choice() -> list[tuple[str, str]]:
    return [(name, name) for name in Domain.objects.values_list("name", flat=True)]
