"""The table of a worker's resources, and amounts of all resources. Plain Python.

Models, forms, serializers, lists, charts, the scheduler and the usage ledger go through `RESOURCES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any

from lcm.domain.messages import Message, gettext, ngettext

# The finest amount: one hundredth of a core, a gigabyte or a GPU.
HUNDREDTHS = 100
ZERO = Decimal(0)


@dataclass(frozen=True)
class Resource:
    """A resource: its name in columns and JSON, its texts, and how its amounts are stored and estimated."""

    name: str
    # Start of the names of derived columns: `memory_hours`, `memory_used`.
    short: str
    label: Message
    # The label within a sentence.
    word: Message
    unit: Message
    # Estimates are rounded up to a multiple of this.
    step: Decimal
    max_digits: int = 8
    # Default weight of an hour of it in the fair share.
    hour_weight: float = 0.0
    # The field of a node that determines its share of a session's amount.
    node_field: str = "cpu_cores"
    # Whether the unit alone says which resource is meant: “4 cores”, but “4 GB memory”.
    named_by_unit: bool = False
    # Whether tables always show it; otherwise it is shown where it is requested.
    listed: bool = True
    # Whether every session and slot needs some of it; tables with few columns show only these.
    required: bool = False

    def unit_for(self, number: int) -> Message:
        """Return the unit after a number."""
        return replace(self.unit, count=number)

    def amount(self, text: str, number: int) -> Message:
        """Return a formatted amount with its unit: `1 core`, `64 GB`."""
        return gettext("%(amount)s %(unit)s", amount=text, unit=self.unit_for(number))

    @property
    def is_counted(self) -> bool:
        """Return whether the resource is its own unit, as GPUs are."""
        return self.unit.text == self.label.text

    @property
    def plural(self) -> Message:
        """Return the noun for an amount of it: `memory`, `GPUs`."""
        return self.unit if self.is_counted else self.word

    @property
    def shortage(self) -> Message:
        """Return the reason that too little is free: `Not enough memory`."""
        return gettext("Not enough %(resource)s", resource=self.plural)

    @property
    def label_with_unit(self) -> Message:
        """Return the label of a field: `Memory, GB`."""
        return self.unit if self.is_counted else gettext("%(resource)s, %(unit)s", **self._texts)

    @property
    def label_with_brackets(self) -> Message:
        """Return the label of a requirement: `Memory (GB)`."""
        return self.unit if self.is_counted else gettext("%(resource)s (%(unit)s)", **self._texts)

    @property
    def hours_label(self) -> Message:
        """Return the column of its usage in an export: `Memory hours`."""
        return gettext("%(resource)s hours", resource=self.label)

    @property
    def hour_weight_label(self) -> Message:
        """Return the label of the weight of its usage: `Memory, per GB-hour`."""
        return gettext("%(resource)s, per %(unit)s-hour", resource=self.label, unit=self.unit_for(1))

    @property
    def column_name(self) -> Message:
        """Return the column in an export: `Memory GB`."""
        return self.unit if self.is_counted else gettext("%(resource)s %(unit)s", **self._texts)

    @property
    def hours(self) -> Message:
        """Return the unit of its usage: `GB-hours`."""
        return gettext("%(unit)s-hours", unit=self.unit_for(1))

    @property
    def _texts(self) -> dict[str, Message]:
        return {"resource": self.label, "unit": self.unit}


RESOURCES = (
    Resource(
        "cpu_cores", "cpu", gettext("CPU"), gettext("CPU"), ngettext("core", "cores", 2),
        step=Decimal("0.5"), hour_weight=1.0, named_by_unit=True, required=True,
    ),
    Resource(
        "memory_gb", "memory", gettext("Memory"), gettext("memory"), gettext("GB"),
        step=Decimal("0.5"), hour_weight=0.25, node_field="memory_mb", required=True,
    ),
    Resource(
        "storage_gb", "storage", gettext("Storage"), gettext("storage"), gettext("GB"),
        step=Decimal(1), max_digits=10, node_field="storage_gb",
    ),
    Resource(
        "gpu", "gpu", gettext("GPU"), gettext("GPU"), ngettext("GPU", "GPUs", 2),
        step=Decimal(1), hour_weight=8.0, max_digits=6, named_by_unit=True, listed=False,
    ),
)  # fmt: skip
RESOURCE_NAMES = tuple(resource.name for resource in RESOURCES)
RESOURCE = {resource.name: resource for resource in RESOURCES}


@dataclass(frozen=True)
class Amounts:
    """An amount of each resource; the fields are the names in `RESOURCES`."""

    cpu_cores: Decimal = ZERO
    memory_gb: Decimal = ZERO
    storage_gb: Decimal = ZERO
    gpu: Decimal = ZERO

    @classmethod
    def of(cls, row: object) -> Amounts:
        """Return the amounts of an object that has them as attributes."""
        return cls(**{name: getattr(row, name) for name in RESOURCE_NAMES})

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Amounts:
        """Return the amounts of a mapping; a missing amount or None is 0."""
        return cls(**{name: values.get(name) or ZERO for name in RESOURCE_NAMES})

    @classmethod
    def from_hundredths(cls, values: Iterable[int]) -> Amounts:
        return cls(
            **{name: Decimal(value) / HUNDREDTHS for name, value in zip(RESOURCE_NAMES, values, strict=True)}
        )

    def to_hundredths(self) -> tuple[int, ...]:
        """Return the amounts as whole hundredths, rounded up, in the order of `RESOURCES`."""
        return tuple(hundredths(amount) for _, amount in self)

    @classmethod
    def most(cls, many: Iterable[Amounts]) -> Amounts:
        """Return the largest amount of each resource."""
        rows = [each.as_dict() for each in many]
        return cls(**{name: max(row[name] for row in rows) for name in RESOURCE_NAMES})

    def __getitem__(self, name: str) -> Decimal:
        amount: Decimal = getattr(self, name)
        return amount

    def __iter__(self) -> Iterator[tuple[Resource, Decimal]]:
        """Yield each resource with its amount."""
        return ((resource, getattr(self, resource.name)) for resource in RESOURCES)

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(**{resource.name: amount + other[resource.name] for resource, amount in self})

    def __bool__(self) -> bool:
        return any(amount for _, amount in self)

    def as_dict(self) -> dict[str, Decimal]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def lacking_in(self, available: Amounts) -> list[Resource]:
        """Return the resources of which less is available."""
        return [resource for resource, amount in self if amount > available[resource.name]]

    def rounded_up(self) -> Amounts:
        """Return the amounts as multiples of the steps of the resources."""
        return Amounts(**{resource.name: round_up(amount, resource.step) for resource, amount in self})


def round_up(value: Decimal, step: Decimal) -> Decimal:
    """Return the next multiple of the step."""
    return (value / step).to_integral_value(ROUND_CEILING) * step


def hundredths(value: object) -> int:
    """Return an amount in hundredths, rounded up, so that a requirement covers it and capacity suffices."""
    exact = (value if isinstance(value, Decimal | int) else Decimal(str(value))) * HUNDREDTHS
    whole = int(exact)
    return whole + (exact > whole)
