"""The one way into the change log."""

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
from lcm.db.prepared_statements import PreparedStatement, insert_statement
from lcm.domain.actors import Actor
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
    """Say what was done to an object; call it in the transaction that does it."""
    entry = build_entry(
        obj, actor=actor, event=event, message=message, reason=reason, before=before, after=after, now=now
    )
    entry.save(force_insert=True)
    return entry


def log_changes(entries: Iterable[ChangeLog]) -> None:
    """The same for many at once."""
    insert_rows(ChangeLog, _FIELDS, (_VALUES(entry) for entry in entries))


def change_log_statement(entry: ChangeLog) -> PreparedStatement[Any]:
    """An entry, to be written together with other things."""
    return insert_statement(ChangeLog, dict(zip(_FIELDS, _VALUES(entry), strict=True)))


def log_bulk_change(model: type[models.Model], times: Mapping[UUID, datetime], **change: Any) -> None:
    """One change that many objects went through, each at its time, as `log_change` takes it.

    The objects are named by their ids, which is all that the words for them may need.
    """
    if not times:
        return
    any_of_them = model(pk=next(iter(times)))
    entry = build_entry(any_of_them, **change)
    same = dict(zip(_FIELDS, _VALUES(entry), strict=True))
    del same["object_id"], same["object_label"], same["at"]
    rows = []
    for key, at in times.items():
        any_of_them.pk = key
        rows.append((str(key), str(any_of_them)[:200], at))
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
    """A change log entry that is not saved yet."""
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
        before=_plain(before),
        after=_plain(after),
    )


def loggable_fields(obj: models.Model) -> dict[str, Any]:
    """An object's own fields as the log keeps them: no secrets, nothing of megabytes."""
    values = model_to_dict(obj)
    return {
        name: getattr(obj, f"{name}_id", value) if _is_relation(obj, name) else value
        for name, value in values.items()
        if name not in _SECRET | _LONG and not obj._meta.get_field(name).many_to_many
    }


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Only what changed, on both sides."""
    keys = [key for key in after if before.get(key) != after[key]]
    return {key: before.get(key) for key in keys}, {key: after[key] for key in keys}


def apply_changes(obj: models.Model, changes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Set attributes of an object and tell what that changes of the row as it is now."""
    fresh = type(obj)._default_manager.get(pk=obj.pk)
    for name, value in changes.items():
        setattr(obj, name, value)
    return differences(
        {name: getattr(fresh, name) for name in changes}, {name: getattr(obj, name) for name in changes}
    )


def _is_relation(obj: models.Model, name: str) -> bool:
    return bool(obj._meta.get_field(name).is_relation)


def _plain(values: Mapping[str, Any] | None) -> Any:
    """Values as JSON has them, so that what is read back equals what was written."""
    if values is None:
        return None
    return json.loads(json.dumps(values, cls=DjangoJSONEncoder))
