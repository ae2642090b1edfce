"""Events about sessions, definitions, tokens and people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _
from pydantic import Field

from lcm.events.catalog import EventData, EventSubject, EventType, Severity
from lcm.models import ApiToken, LabletDefinition, LabletSession, User, Webhook


class SessionData(EventData):
    """Data of an event about a session. The values are those when the event is delivered first."""

    definition: str | None = Field(default=None, description="Name and version.", examples=["ospf v1.0"])
    revision: int | None = Field(default=None, description="Pinned revision.", examples=[3])
    owner: str | None = Field(default=None, description="User name.", examples=["stan"])
    domain: str | None = Field(default=None, examples=["academy"])
    project: str | None = Field(default=None, description="“domain / project”.", examples=["academy / ccna"])
    pool: str | None = Field(default=None, examples=["cml-eu"])
    starts_at: datetime | None = Field(default=None, examples=["2026-03-02T09:00:00Z"])
    ends_at: datetime | None = Field(default=None, examples=["2026-03-02T11:00:00Z"])


class DefinitionData(EventData):
    """Data of an event about a definition."""

    definition: str | None = Field(default=None, description="Name and version.", examples=["ospf v1.0"])
    revision: int | None = Field(default=None, description="Current revision.", examples=[3])
    pool: str | None = Field(default=None, description="Pool of new sessions.", examples=["cml-eu"])


class TokenData(EventData):
    """Data of an event about an API token; never its key."""

    kind: str | None = Field(default=None, description="`person` or `controller`.", examples=["controller"])
    owner: str | None = Field(default=None, description="User name of a person's token.", examples=["stan"])
    expires_at: datetime | None = Field(default=None, examples=["2026-03-02T09:00:00Z"])


class PersonData(EventData):
    """Data of an event about a person."""

    owner: str | None = Field(default=None, description="User name.", examples=["stan"])


class WebhookData(EventData):
    """Data of an event about a webhook."""

    owner: str | None = Field(default=None, description="User name.", examples=["stan"])


def _sessions(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = LabletSession.objects.filter(pk__in=ids).order_by()
    return {
        str(row.pk): {
            "definition": str(row.definition),
            "revision": row.revision.number,
            "owner": row.owner.username,
            "domain": row.project.domain.name,
            "project": row.project.path,
            "pool": row.pool,
            "starts_at": row.starts_at,
            "ends_at": row.ends_at,
        }
        for row in rows.select_related("definition", "revision", "owner", "project__domain")
    }


def _definitions(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = LabletDefinition.objects.filter(pk__in=ids).select_related("current_revision").order_by()
    return {
        str(row.pk): {
            "definition": str(row),
            "revision": row.current_revision.number if row.current_revision else None,
            "pool": row.pool,
        }
        for row in rows
    }


def _tokens(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = ApiToken.objects.filter(pk__in=ids).select_related("user").order_by()
    return {
        str(row.pk): {
            "kind": row.kind,
            "owner": row.user.username if row.user else None,
            "expires_at": row.expires_at,
        }
        for row in rows
    }


def _people(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = User.objects.filter(pk__in=ids).order_by().values_list("pk", "username")
    return {str(key): {"owner": name} for key, name in rows}


def _webhooks(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = Webhook.objects.filter(pk__in=ids).order_by().values_list("pk", "owner__username")
    return {str(key): {"owner": name} for key, name in rows}


SESSION = EventSubject("labletsession", SessionData, _sessions, "session_detail")
DEFINITION = EventSubject("labletdefinition", DefinitionData, _definitions, "definition_detail")
_TOKEN = EventSubject("apitoken", TokenData, _tokens)
_PERSON = EventSubject("user", PersonData, _people)
_WEBHOOK = EventSubject("webhook", WebhookData, _webhooks, "webhook_detail")


def _status(status: str) -> dict[str, str]:
    return {"status": status}


EVENT_TYPES = (
    EventType(
        "session.requested", _("Session requested"),
        _("A person or an API client requested a session. It waits for a slot."), SESSION,
    ),
    EventType(
        "session.scheduled", _("Session scheduled"),
        _("The scheduler placed the session on a slot."), SESSION, after=_status("SCHEDULED"),
    ),
    EventType(
        "session.ready", _("Session ready"),
        _("The lab has started and waits for its user."), SESSION, after=_status("READY"),
    ),
    EventType(
        "session.running", _("Session running"), _("The lab is in use."), SESSION, after=_status("RUNNING"),
    ),
    EventType(
        "session.ending_soon", _("Session ending soon"),
        _("The timeslot ends soon, by default in 15 minutes. After an extension the event occurs again."),
        SESSION, Severity.WARNING, after={"ends_at": "2026-03-02T11:00:00Z"},
    ),
    EventType(
        "session.extended", _("Session extended"), _("The timeslot has a later end."), SESSION,
        after={"ends_at": "2026-03-02T11:00:00Z"},
    ),
    EventType(
        "session.ended", _("Session ended"),
        _("The lab was removed at the end of the timeslot or after a stop."), SESSION,
        after=_status("TERMINATED"),
    ),
    EventType(
        "session.cancelled", _("Session cancelled"),
        _("The session was cancelled before a lab existed."), SESSION, after=_status("CANCELLED"),
    ),
    EventType(
        "session.expired", _("Session expired"),
        _("The timeslot ended before a slot was assigned."), SESSION, Severity.WARNING,
        after=_status("EXPIRED"),
    ),
    EventType(
        "session.failed", _("Session failed"),
        _("The lab could not be started or removed."), SESSION, Severity.CRITICAL, after=_status("FAILED"),
    ),
    EventType(
        "session.requeued", _("Session requeued"),
        _("The session lost its slot and waits for another one."), SESSION, Severity.WARNING,
        after=_status("PENDING"),
    ),
    EventType(
        "session.interrupted", _("Session interrupted"),
        _("The provider takes the session's worker away."), SESSION, Severity.CRITICAL,
    ),
    EventType(
        "definition.imported", _("Definition imported"), _("A topology was imported."), DEFINITION,
    ),
    EventType(
        "definition.revision_applied", _("Revision applied"),
        _("A definition has a new current revision."), DEFINITION, after={"cpu_cores": "2.50"},
    ),
    EventType(
        "definition.reverted", _("Definition reverted"),
        _("The values of an older revision are current again."), DEFINITION, after={"cpu_cores": "2.00"},
    ),
    EventType(
        "token.created", _("Token created"), _("An API token was created or rotated."), _TOKEN,
    ),
    EventType(
        "token.expiring", _("Token expiring"), _("An API token expires in 7 days."), _TOKEN,
        Severity.WARNING, after={"expires_at": "2026-03-09T09:00:00Z"},
    ),
    EventType("token.revoked", _("Token revoked"), _("An API token was revoked."), _TOKEN),
    EventType(
        "person.role_changed", _("Role changed"), _("A person has another role."), _PERSON,
        after={"role": "Operator"},
    ),
    EventType(
        "webhook.disabled", _("Webhook disabled"),
        _("The endpoint is gone, or every attempt of 24 hours failed."), _WEBHOOK, Severity.CRITICAL,
        after={"enabled": False},
    ),
)  # fmt: skip
