"""The catalogue of domain events.

An event is a change log entry whose `event` is a type of this catalogue, so it is stored in the transaction
of its cause. A type says what the event means and describes its data as a pydantic model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from django.conf import settings
from django.urls import reverse
from pydantic import BaseModel, ConfigDict, Field

from lcm.extensions import Extension

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from lcm.models import ChangeLog

TYPE_PREFIX = "org.lcm."
EXAMPLE_ID = "4f2c9a00-0000-4000-8000-000000000000"


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class EventData(BaseModel):
    """The data that every event carries. `None`: the object no longer exists, or the value is not set."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="Name of the object when the event occurred.", examples=["session 4f2c9a"])
    message: str = Field(description="What happened, in one sentence.")
    actor: str = Field(description="Person, controller or “LCM”.", examples=["LCM"])
    reason: str = Field(default="", description="Reason that the actor gave.")
    severity: Severity
    url: str | None = Field(
        default=None,
        description="Page of the object.",
        examples=["https://lcm.example.org/sessions/4f2c9a00-0000-4000-8000-000000000000/"],
    )
    before: dict[str, Any] | None = Field(default=None, description="Changed values before the event.")
    after: dict[str, Any] | None = Field(default=None, description="Changed values, or what was found.")


# Returns the further fields of the objects with these ids; objects that were deleted are missing.
Read = Callable[[Sequence[str]], Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class EventSubject:
    """A kind of object that events are about, by its model name in the change log."""

    object_type: str
    data: type[EventData]
    read: Read
    # URL name of the object's page, which takes its id, or a function that returns the URL for an id.
    page: str | Callable[[str], str] = ""


@dataclass(frozen=True)
class EventType:
    """A public event; `after` is an example of what the change log records with it."""

    name: str
    title: StrOrPromise
    description: StrOrPromise
    subject: EventSubject
    severity: Severity = Severity.INFO
    after: Mapping[str, Any] | None = None

    @property
    def schema_url(self) -> str:
        return _public_url(reverse("api:event-type-schema", args=[self.name]))

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the event's data."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": self.schema_url,
            **self.subject.data.model_json_schema(mode="serialization"),
            "title": self.name,
            "description": str(self.description),
        }


@cache
def event_types() -> Mapping[str, EventType]:
    """Return all types by name, in the order of the catalogue."""
    return {each.name: each for each in Extension.installed().events}


def matching_types(patterns: Iterable[str]) -> list[str]:
    """Return the names of the types that match at least one pattern, such as `session.*`."""
    wanted = list(patterns)
    return [name for name in event_types() if any(fnmatchcase(name, pattern) for pattern in wanted)]


def events_data(changes: Sequence[ChangeLog]) -> list[EventData]:
    """Return the data of events, with one read for each kind of object."""
    ids: dict[EventSubject, list[str]] = {}
    for change in changes:
        ids.setdefault(event_types()[change.event].subject, []).append(change.object_id)
    found = {subject: subject.read(list(dict.fromkeys(keys))) for subject, keys in ids.items()}
    return [_data(change, found) for change in changes]


def _data(change: ChangeLog, found: Mapping[EventSubject, Mapping[str, Mapping[str, Any]]]) -> EventData:
    kind = event_types()[change.event]
    fields = found[kind.subject].get(change.object_id)
    page = page_url(kind.subject.page, change.object_id) if fields is not None else ""
    return kind.subject.data(
        name=change.object_label,
        message=change.message,
        actor=change.actor,
        reason=change.reason,
        severity=kind.severity,
        url=_public_url(page) if page else None,
        before=change.before,
        after=change.after,
        **(fields or {}),
    )


def page_url(page: str | Callable[[str], str], key: str) -> str:
    """Return the URL of an object's page by its URL name or function; empty without a page."""
    if callable(page):
        return page(key)
    return reverse(page, args=[key]) if page else ""


def _public_url(path: str) -> str:
    return f"{settings.CONFIG['PUBLIC_URL']}{path}"


def cloud_event(change: ChangeLog, data: EventData) -> dict[str, Any]:
    """Return an event as CloudEvents 1.0 JSON; the id is the same whenever it is built."""
    subject = f"{change.object_type}/{change.object_id}"
    return _cloud_event(str(change.pk), event_types()[change.event], subject, change.at, data)


def example_event(kind: EventType) -> dict[str, Any]:
    """Return an example of a type; the examples of the fields are its data."""
    model = kind.subject.data
    fields = {name: each.examples[0] for name, each in model.model_fields.items() if each.examples}
    data = model.model_validate(
        fields | {"message": str(kind.title), "severity": kind.severity, "after": kind.after}
    )
    subject = f"{kind.subject.object_type}/{EXAMPLE_ID}"
    return _cloud_event("1", kind, subject, datetime(2026, 3, 2, 9, tzinfo=UTC), data)


def _cloud_event(key: str, kind: EventType, subject: str, time: datetime, data: EventData) -> dict[str, Any]:
    event = CloudEvent(
        attributes={
            "id": key,
            "source": settings.CONFIG["PUBLIC_URL"],
            "specversion": "1.0",
            "type": TYPE_PREFIX + kind.name,
            "subject": subject,
            "time": time,
            "datacontenttype": "application/json",
            "dataschema": kind.schema_url,
        },
        data=data.model_dump(mode="json"),
    )
    written: dict[str, Any] = json.loads(JSONFormat().write(event))
    return written
