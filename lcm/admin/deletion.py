"""Dependents that are deleted with an object, and references that prevent its deletion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db import models
from django.urls import reverse
from django.utils.html import format_html

from lcm.web.pagination import capped_count

EXAMPLES = 5


def protecting_objects(obj: models.Model) -> list[str]:
    """Return links to some of the rows that protect an object, and the number of the others."""
    return [text for rows in _related_rows(obj, models.PROTECT) for text in first_rows(rows)]


def with_dependents(obj: models.Model) -> Iterator[models.Model]:
    """Return an object and the dependents that are deleted with it, if the admin shows them."""
    yield obj
    for rows in _related_rows(obj, models.CASCADE):
        if admin.site.is_registered(rows.model):
            for row in rows:
                yield from with_dependents(row)


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


def _related_rows(obj: models.Model, on_delete: object) -> Iterator[models.QuerySet[Any]]:
    for relation in obj._meta.related_objects:
        if relation.on_delete is on_delete:
            yield relation.related_model._base_manager.filter(**{relation.field.name: obj})


def _change_url(obj: models.Model) -> str:
    return reverse(f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change", args=[quote(str(obj.pk))])
