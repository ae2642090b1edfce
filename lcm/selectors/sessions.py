"""Queries of sessions, and the timeline of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Value

from lcm.domain.lifecycle import ACTIVE, FINAL, HAPPY_PATH, SessionStatus
from lcm.extensions import Extension
from lcm.models import Domain, LabletDefinition, LabletSession, Project, SessionTransition, User
from lcm.models.sessions import STATUS_LABELS
from lcm.selectors.names import by_id

# A search first finds at most this many definitions, people and projects, then their sessions by index.
MAX_NAMES = 200


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
    readers = Extension.installed().session_details
    return {name: value for read in readers for name, value in read(session).items()}


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
    definitions, owners, projects = (
        _with_name(field, names)
        for field, names in (
            ("definition", LabletDefinition.objects.filter(name__icontains=text)),
            ("owner", User.objects.filter(username__icontains=text)),
            ("project", Project.objects.filter(Q(name__icontains=text) | Q(domain__name__icontains=text))),
        )
    )
    ids: dict[str, list[UUID]] = {}
    for field, key in definitions.union(owners, projects, all=True):
        ids.setdefault(field, []).append(key)
    found = by_id(text)
    for field, keys in ids.items():
        found |= Q(**{f"{field}__in": keys})
    return queryset.filter(found)


def _with_name(field: str, names: QuerySet[Any]) -> Any:
    """Return pairs of a field and a key, for a union; SQLite limits only subqueries of a union."""
    few = names.order_by().values("pk")[:MAX_NAMES]
    rows = names.model._default_manager.filter(pk__in=few).order_by()
    return rows.annotate(of=Value(field)).values_list("of", "pk")


def domains_for_choice() -> list[tuple[str, str]]:
    return [(name, name) for name in Domain.objects.values_list("name", flat=True)]


@dataclass(frozen=True)
class TimelineStep:
    """A past, current or expected status of a session; for an expected one `at` is the planned time."""

    status: SessionStatus
    at: datetime | None
    lasted: timedelta | None
    state: str  # past, now, next

    @property
    def label(self) -> str:
        return str(STATUS_LABELS[self.status])


def session_timeline(
    session: LabletSession, transitions: Sequence[SessionTransition], *, now: datetime
) -> list[TimelineStep]:
    """Return the steps of the current attempt, then the expected next steps."""
    steps = [step for step in transitions if step.attempt == session.attempt] or list(transitions)
    past: list[TimelineStep] = []
    for index, step in enumerate(steps):
        status = SessionStatus(step.to_status)
        following = steps[index + 1].at if index + 1 < len(steps) else None
        is_last = following is None
        # The clock of the process that made the transition may be ahead of this one.
        end = following or max(now, step.at)
        lasted = None if is_last and status in FINAL else end - step.at
        state = "now" if is_last and status not in FINAL else "past"
        past.append(TimelineStep(status, step.at, lasted, state))
    return past + _expected_steps(session, now)


def _expected_steps(session: LabletSession, now: datetime) -> list[TimelineStep]:
    """Return the expected steps; only the start and end of the timeslot have a planned time."""
    status = SessionStatus(session.status)
    if status not in HAPPY_PATH or status in FINAL:
        return []
    planned = {SessionStatus.RUNNING: session.starts_at, SessionStatus.COLLECTING: session.ends_at}
    future = {each: at for each, at in planned.items() if at > now}
    rest = HAPPY_PATH[HAPPY_PATH.index(status) + 1 :]
    return [TimelineStep(each, future.get(each), None, "next") for each in rest]
