"""Amounts of resources and their comparison."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.utils.translation import gettext as _

NAMES = ("cpu_cores", "memory_gb", "storage_gb", "gpu")


@dataclass(frozen=True)
class Resources:
    """An amount of each resource of a worker."""

    cpu_cores: Decimal = Decimal(0)
    memory_gb: Decimal = Decimal(0)
    storage_gb: Decimal = Decimal(0)
    gpu: Decimal = Decimal(0)

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.cpu_cores + other.cpu_cores,
            self.memory_gb + other.memory_gb,
            self.storage_gb + other.storage_gb,
            self.gpu + other.gpu,
        )

    def lacking_in(self, room: Resources) -> list[str]:
        """Return the names of the resources that are insufficient."""
        pairs = {
            "CPU": (self.cpu_cores, room.cpu_cores),
            _("memory"): (self.memory_gb, room.memory_gb),
            _("storage"): (self.storage_gb, room.storage_gb),
            _("GPUs"): (self.gpu, room.gpu),
        }
        return [name for name, (requested, free) in pairs.items() if requested > free]


def resources_of(row: object) -> Resources:
    """Return the amounts of a row that has them as columns."""
    return Resources(*(getattr(row, name) for name in NAMES))
