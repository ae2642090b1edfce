"""Resources in forms, lists and templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from django import forms
from django.utils.translation import gettext

from lcm.domain.messages import Message
from lcm.domain.resources import RESOURCES, Resource
from lcm.models.messages import lazy_text, translated
from lcm.web.list_columns import Column
from lcm.web.wording import NBSP, amount_text, plural_number

LISTED = tuple(each for each in RESOURCES if each.listed)
REQUIRED = tuple(each for each in RESOURCES if each.required)


@dataclass(frozen=True)
class ShownAmount:
    """An amount of a resource on a page; None is unknown."""

    resource: Resource
    value: Decimal | None

    @property
    def label(self) -> str:
        return translated(self.resource.label)

    @property
    def number(self) -> str:
        return gettext("unknown") if self.value is None else amount_text(self.value)

    @property
    def unit(self) -> str:
        """Return the unit after this amount; empty if a plural cannot be chosen for an unknown amount."""
        if self.value is None:
            return "" if self.resource.unit.plural else translated(self.resource.unit)
        return translated(self.resource.unit_for(plural_number(self.value)))

    @property
    def text(self) -> str:
        """Return the amount with its unit on one line: `4 cores`, `64 GB`."""
        return f"{self.number} {self.unit}".strip().replace(" ", NBSP)

    @property
    def named_text(self) -> str:
        """Return the amount for a sentence: `4 cores`, `64 GB memory`."""
        return self.text if self.resource.named_by_unit else f"{self.text} {translated(self.resource.word)}"


def shown_amounts(row: object, resources: Sequence[Resource] | None = None) -> list[ShownAmount]:
    """Return amounts of an object or a mapping; by default the listed amounts and the amounts above 0."""
    read: Callable[[str], Any] = row.get if isinstance(row, Mapping) else lambda name: getattr(row, name)
    found = []
    for resource in resources or RESOURCES:
        value = read(resource.name)
        if resources or resource.listed or value:
            found.append(ShownAmount(resource, None if value is None else Decimal(str(value))))
    return found


def amount_field(resource: Resource, label: Message, **options: Any) -> forms.DecimalField:
    return forms.DecimalField(
        label=lazy_text(label),
        min_value=0,
        max_digits=resource.max_digits,
        decimal_places=2,
        widget=forms.NumberInput(attrs={"class": "input"}),
        **options,
    )


def amount_columns(
    resources: Sequence[Resource] = LISTED, *, of: str = "", sortable: bool = True
) -> list[Column]:
    """Return a column for each resource of a row, or of the object in its attribute `of`."""
    path = f"{of}__" if of else ""
    return [
        Column(
            lazy_text(each.label),
            _reader(of, each.name),
            sort=f"-{path}{each.name}" if sortable else "",
            numeric=True,
            export_label=lazy_text(each.column_name),
            unit=partial(_unit, each),
            name=each.name,
        )
        for each in resources
    ]


def _unit(resource: Resource, amount: Decimal) -> str:
    return ShownAmount(resource, amount).unit


def _reader(of: str, name: str) -> Callable[[Any], Any]:
    return lambda row: getattr(getattr(row, of) if of else row, name)
