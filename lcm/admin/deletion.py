"""Dependents that are deleted with an object, and references that prevent its deletion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import NestedObjects, quote
from django.db import models, router
from django.urls import reverse
from django.utils.html import format_html

from lcm.web.pagination import capped_count

EXAMPLES = 5


def protecting_objects(obj: models.Model) -> list[str]:
    """Return links to some of the rows that protect an object, and the number of the others."""
    return [
        text
        for relation in obj._meta.related_objects
        if relation.on_delete is models.PROTECT
        for text in first_rows(relation.related_model._base_manager.filter(**{relation.field.name: obj}))
    ]


def first_rows(rows: models.QuerySet[Any]) -> list[str]:
    kind = rows.model._meta
    texts: list[str] = [
        format_html('{}: <a href="{}">{}</a>', str(kind.verbose_name).capitalize(), _change_url(row), row)
        for row in rows[:EXAMPLES]
    ]
    count, more = capped_count(rows)
    if count > EXAMPLES:
        texts.append(f"and {count - EXAMPLES:,}{' or more' if more else ''} other {kind.verbose_name_plural}")
    return texts


def with_dependents(objs: list[Any]) -> Iterator[models.Model]:
    """Return the objects and the dependents that Django deletes with them, if the admin shows them."""
    if not objs:
        return
    collector = NestedObjects(using=router.db_for_write(type(objs[0])), origin=objs)
    collector.collect(objs)
    for found in collector.model_objs.values():
        if admin.site.is_registered(type(next(iter(found)))):
            yield from sorted(found, key=lambda obj: str(obj.pk))


def _change_url(obj: models.Model) -> str:
    return reverse(f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change", args=[quote(str(obj.pk))])
