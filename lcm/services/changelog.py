"""Writing the change log. All changes are logged through this module."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.forms.models import model_to_dict
from django.utils import timezone

from lcm.config.logs import trace_id
from lcm.db.bulk import insert_rows
from lcm.db.statements import Statement, insert_statement
from lcm.domain.actors import Actor
from lcm.events.catalog import event_types
from lcm.models import ChangeLog

_SECRET = frozenset({"password", "hash"})
_LONG = frozenset({"topology_yaml", "nodes", "links"})
_FIELDS = [field.attname for field in ChangeLog._meta.concrete_fields if not field.primary_key]
_VALUES = attrgetter(*_FIELDS)


def log_change(
    obj: models.Model,
    *,
    actor: Actor,
    event: str,
    message: str,
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    now: datetime | None = None,
) -> ChangeLog:
    """Log a change of an object; call it in the transaction of the change."""
    entry = build_entry(
        obj, actor=actor, event=event, message=message, reason=reason, before=before, after=after, now=now
    )
    entry.save(force_insert=True)
    return entry


def log_changes(entries: Iterable[ChangeLog]) -> None:
    """Save many entries at once."""
    # A list: building an entry may need a query, which would wait for the COPY of the insert for ever.
    insert_rows(ChangeLog, _FIELDS, [_VALUES(entry) for entry in entries])


def change_log_statement(entry: ChangeLog) -> Statement[None]:
    """Return the INSERT of an entry, to run with other statements in one round trip."""
    return insert_statement(ChangeLog, dict(zip(_FIELDS, _VALUES(entry), strict=True)))


def log_bulk_change(model: type[models.Model], times: Mapping[UUID, datetime], **change: Any) -> None:
    """Log the same change of many objects, each at its own time. `change` is as for `log_change`.

    Objects are given by id, so the model's `__str__` must not use any other field.
    """
    if not times:
        return
    placeholder = model(pk=next(iter(times)))
    entry = build_entry(placeholder, **change)
    same = dict(zip(_FIELDS, _VALUES(entry), strict=True))
    del same["object_id"], same["object_label"], same["at"]
    rows = []
    for key, at in times.items():
        placeholder.pk = key
        rows.append((str(key), str(placeholder)[:200], at))
    insert_rows(ChangeLog, ["object_id", "object_label", "at"], rows, same=same)


def build_entry(
    obj: models.Model,
    *,
    actor: Actor,
    event: str,
    message: str,
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    now: datetime | None = None,
) -> ChangeLog:
    """Return an unsaved change log entry."""
    return ChangeLog(
        at=now or timezone.now(),
        actor=actor.label,
        user_id=actor.user_id,
        token_id=actor.token_id,
        request_id=trace_id(),
        object_type=obj._meta.model_name or "",
        object_id=str(obj.pk),
        object_label=str(obj)[:200],
        event=event,
        message=message[:500],
        reason=reason[:500],
        before=_as_json(before),
        after=_as_json(after),
        routed=False if event in event_types() else None,
    )


def loggable_fields(obj: models.Model) -> dict[str, Any]:
    """Return the fields of an object to log, without secrets and large values."""
    values = model_to_dict(obj)
    return {
        name: getattr(obj, f"{name}_id", value) if obj._meta.get_field(name).is_relation else value
        for name, value in values.items()
        if name not in _SECRET | _LONG and not obj._meta.get_field(name).many_to_many
    }


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values that differ, before and after."""
    keys = [key for key in after if before.get(key) != after[key]]
    return {key: before.get(key) for key in keys}, {key: after[key] for key in keys}


def apply_changes(obj: models.Model, changes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Set attributes of an object; return the values that differ from the stored row, before and after."""
    stored = type(obj)._default_manager.get(pk=obj.pk)
    for name, value in changes.items():
        setattr(obj, name, value)
    return differences(
        {name: getattr(stored, name) for name in changes}, {name: getattr(obj, name) for name in changes}
    )


def _as_json(values: Mapping[str, Any] | None) -> Any:
    """Convert values to JSON types, so that the entry equals what the database returns."""
    if values is None:
        return None
    return json.loads(json.dumps(values, cls=DjangoJSONEncoder))
