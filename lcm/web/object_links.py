"""Names and page URLs of the objects in the change log."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.db.models import Model
from django.urls import reverse
from django.utils.translation import override

from lcm.models import ChangeLog
from lcm.web.filters import OBJECT_TYPES

# URL name of each kind that has a page; other apps add theirs.
OBJECT_PAGES = {
    "labletsession": "session_detail",
    "labletdefinition": "definition_detail",
    "domain": "domain_detail",
    "project": "project_detail",
    "job": "job_detail",
}


def object_name(change: ChangeLog) -> str:
    """Return the name with its kind: `slot cml-us-01`."""
    kind, label = _kind(change.object_type), change.object_label
    # Names that contain their kind are stored in English.
    named = _english_kind(change.object_type).split()[-1:] == label.lower().split()[:1]
    return label if named or not kind else f"{kind} {label}"


def link_objects(changes: Sequence[Any]) -> None:
    """Set the URL of each change's object, empty if the object no longer exists; one query for all."""
    wanted: dict[str, set[UUID]] = {}
    for change in changes:
        if change.object_type in OBJECT_PAGES:
            wanted.setdefault(change.object_type, set()).add(UUID(change.object_id))
    there = _existing(wanted)
    for change in changes:
        page = OBJECT_PAGES.get(change.object_type)
        is_there = page and UUID(change.object_id) in there
        change.object_url = reverse(page, args=[change.object_id]) if is_there else ""


def model_of(object_type: str) -> type[Model] | None:
    return next((each for each in apps.get_models() if each._meta.model_name == object_type), None)


def _kind(object_type: str) -> str:
    model = model_of(object_type)
    return dict(OBJECT_TYPES).get(object_type, str(model._meta.verbose_name) if model else "").lower()


@cache
def _english_kind(object_type: str) -> str:
    with override(settings.LANGUAGE_CODE):
        return _kind(object_type)


def _existing(wanted: dict[str, set[UUID]]) -> set[UUID]:
    parts = [
        model._default_manager.filter(pk__in=keys).order_by().values_list("pk", flat=True)
        for name, keys in wanted.items()
        if (model := model_of(name))
    ]
    return set(parts[0].union(*parts[1:], all=True)) if parts else set()
