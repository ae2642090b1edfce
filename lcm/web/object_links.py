"""Names and page URLs of the objects in the change log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.db.models import Model
from django.utils.translation import override

from lcm.events.catalog import page_url
from lcm.extensions import Extension
from lcm.models import ChangeLog, Watch

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class ObjectKind:
    """A kind of object in the change log.

    `page`: the URL name of its page, which takes the id. Objects whose page takes no UUID have a function
    that returns the URL for an id; LCM then does not check whether the object still exists.
    """

    label: StrOrPromise
    page: str | Callable[[str], str] = ""
    # People can watch its events.
    is_watchable: bool = False


def object_name(change: ChangeLog | Watch) -> str:
    """Return the name with its kind: `slot cml-us-01`."""
    kind, label = _kind(change.object_type), change.object_label
    # Names that contain their kind are stored in English.
    named = _english_kind(change.object_type).split()[-1:] == label.lower().split()[:1]
    return label if named or not kind else f"{kind} {label}"


def link_objects(changes: Sequence[Any]) -> None:
    """Set the URL of each change's object, empty if the object no longer exists; one query for all."""
    keys_by_type: dict[str, set[UUID]] = {}
    for change in changes:
        if isinstance(page := _page_of(change.object_type), str) and page:
            keys_by_type.setdefault(change.object_type, set()).add(UUID(change.object_id))
    existing = _existing(keys_by_type)
    for change in changes:
        page = _page_of(change.object_type)
        is_there = callable(page) or (page and UUID(change.object_id) in existing)
        change.object_url = page_url(page, change.object_id) if is_there else ""


def _page_of(object_type: str) -> str | Callable[[str], str]:
    kind = Extension.installed().objects.get(object_type)
    return kind.page if kind else ""


def is_watchable(object_type: str) -> bool:
    kind = Extension.installed().objects.get(object_type)
    return kind is not None and kind.is_watchable


def page_of(object_type: str, object_id: str) -> str:
    """Return the URL of the page of an object that has one."""
    return page_url(_page_of(object_type), object_id)


def model_of(object_type: str) -> type[Model] | None:
    return next((each for each in apps.get_models() if each._meta.model_name == object_type), None)


def exists(change: ChangeLog) -> bool:
    """Return whether the object of a change still exists."""
    model = model_of(change.object_type)
    return model is not None and model._default_manager.filter(pk=change.object_id).exists()


def _kind(object_type: str) -> str:
    if kind := Extension.installed().objects.get(object_type):
        return str(kind.label).lower()
    model = model_of(object_type)
    return str(model._meta.verbose_name).lower() if model else ""


@cache
def _english_kind(object_type: str) -> str:
    with override(settings.LANGUAGE_CODE):
        return _kind(object_type)


def _existing(keys_by_type: dict[str, set[UUID]]) -> set[UUID]:
    parts = [
        model._default_manager.filter(pk__in=keys).order_by().values_list("pk", flat=True)
        for name, keys in keys_by_type.items()
        if (model := model_of(name))
    ]
    return set(parts[0].union(*parts[1:], all=True)) if parts else set()
