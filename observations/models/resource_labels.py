"""Labels and units of resources, as pages and errors show them."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from observations.arithmetic.measures import ALLOCATED, CPU, MEMORY, STORAGE, USED, text

RESOURCE_LABELS = {CPU: _("CPU"), MEMORY: _("Memory"), STORAGE: _("Storage")}
RESOURCE_UNITS = {CPU: _("cores"), MEMORY: _("GB"), STORAGE: _("GB")}
SOURCE_LABELS = {USED: _("used"), ALLOCATED: _("allocated")}


def core_unit(units: int) -> str:
    """Return the unit after hundredths of a core."""
    return ngettext("core", "cores", 1 if units == 100 else 2)


def resource_amount(resource: str, units: int) -> str:
    """Return hundredths of a resource with their unit: `3.5 cores`, `1 core`, `2 GB`."""
    unit = core_unit(units) if resource == CPU else RESOURCE_UNITS[resource]
    return f"{text(units)} {unit}"
