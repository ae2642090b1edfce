"""Columns of models that hold an amount of each resource."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models import Q

from lcm.domain.resources import RESOURCE, RESOURCE_NAMES, RESOURCES, Amounts
from lcm.models.messages import lazy_text


def amount_column(name: str, **options: Any) -> models.DecimalField[Decimal | float | str, Decimal]:
    return models.DecimalField(max_digits=RESOURCE[name].max_digits, decimal_places=2, **options)


class ResourceColumns(models.Model):
    """An amount of each resource."""

    cpu_cores = amount_column("cpu_cores")
    memory_gb = amount_column("memory_gb")
    storage_gb = amount_column("storage_gb")
    gpu = amount_column("gpu", default=0)

    class Meta:
        abstract = True

    @property
    def amounts(self) -> Amounts:
        return Amounts.of(self)


# Texts of pages and errors, by name.
RESOURCE_LABELS = {each.name: lazy_text(each.label) for each in RESOURCES}
RESOURCE_UNITS = {each.name: lazy_text(each.unit) for each in RESOURCES}
HOUR_NAMES = {each.name: lazy_text(each.hours) for each in RESOURCES}

# Conditions of check constraints.
NOT_NEGATIVE = Q(**{f"{name}__gte": 0 for name in RESOURCE_NAMES})
REQUIRED_POSITIVE = Q(**{f"{each.name}__{'gt' if each.required else 'gte'}": 0 for each in RESOURCES})
