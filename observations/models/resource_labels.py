"""Labels and units of resources, as pages and errors show them."""

from __future__ import annotations

from collections.abc import Callable

from django.utils.translation import gettext_lazy as _

from lcm.domain.messages import Message, gettext
from lcm.domain.resources import RESOURCE, RESOURCES, Resource
from lcm.models.messages import lazy_text, translated
from observations.arithmetic.measures import ALLOCATED, CPU, SOURCE_NAMES, SOURCES, USED, plural_of, with_unit


def _labels(of: Callable[[Resource], Message]) -> dict[str, str]:
    return {each.name: lazy_text(of(each)) for each in RESOURCES}


SOURCE_LABELS = {USED: _("used"), ALLOCATED: _("allocated")}
# Columns of lists and exports.
REQUIRED_LABELS = _labels(lambda each: gettext("%(column)s required", column=each.column_name))
RECOMMENDED_LABELS = _labels(lambda each: gettext("%(column)s recommended", column=each.column_name))
PEAK_LABELS = _labels(lambda each: gettext("Peak %(resource)s", resource=each.word))
PEAK_SOURCE_LABELS = {
    (each.name, source): lazy_text(
        gettext("Peak %(resource)s %(source)s", resource=each.word, source=SOURCE_NAMES[source])
    )
    for each in RESOURCES
    for source in SOURCES
}


def core_unit(units: int) -> str:
    """Return the unit after hundredths of a core."""
    return unit_after(units, CPU)


def unit_after(units: int, resource: str) -> str:
    """Return the unit after hundredths of a resource."""
    return translated(RESOURCE[resource].unit_for(plural_of(units)))


def resource_amount(resource: str, units: int) -> str:
    """Return hundredths of a resource with their unit: `3.5 cores`, `1 core`, `2 GB`."""
    return translated(with_unit(resource, units))
