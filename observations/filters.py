"""Filters of the observation lists, and filters that observations add to other lists."""

from __future__ import annotations

from typing import Any

import django_filters as df
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from lcm.models import LabletDefinition, LabletSession, User
from lcm.selectors.names import by_id
from lcm.selectors.sessions import MAX_NAMES
from lcm.web.added_filters import AddedFilter
from lcm.web.filter_time import filter_now
from lcm.web.filters import (
    ChoicesFilter,
    DefinitionFilter,
    FlagFilter,
    ObjectFilter,
    SearchFilter,
)
from lcm.web.period_filters import PeriodFilter, ends_of_period
from observations.models import DriftReview, NotCountedReason, ReviewState
from observations.models.aggregates import ProvisioningClass
from observations.models.drift import KIND_LABELS, is_open

# Of the matching people, the most recently requested sessions.
MAX_SESSIONS = 2_000


class DriftFilter(df.FilterSet):
    q = SearchFilter("name", "definition__name", "reason")
    state = ChoicesFilter(choices=ReviewState.choices, label=_("State"), method="in_state")
    kind = ChoicesFilter(choices=list(KIND_LABELS.items()), label=_("Kind"))
    definition = ObjectFilter(LabletDefinition, field_name="definition_id", label=_("Definition"))
    seen = PeriodFilter(field_name="last_seen", label=_("Last observed"))
    seen_from, seen_to = ends_of_period("last_seen", menu="seen")

    def in_state(self, qs: QuerySet[DriftReview], name: str, value: list[str]) -> QuerySet[DriftReview]:
        """Filter by current state; an expired acknowledgement counts as open."""
        now = filter_now()
        states = {
            ReviewState.OPEN.value: is_open(now),
            ReviewState.ACKNOWLEDGED.value: Q(state=ReviewState.ACKNOWLEDGED, acknowledged_until__gt=now),
            ReviewState.RESOLVED.value: Q(state=ReviewState.RESOLVED),
        }
        found = Q()
        for state in value:
            found |= states[state]
        return qs.filter(found)


class EvidenceSearch(df.CharFilter):
    """Search by start of session ID, owner or definition.

    The few matching owners and definitions are read first, so that an index finds their rows.
    """

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not value:
            return qs
        definitions = LabletDefinition.objects.filter(name__icontains=value)
        found = by_id(value) | Q(definition__in=_keys(definitions, MAX_NAMES))
        if owners := _keys(User.objects.filter(username__icontains=value), MAX_NAMES):
            theirs = LabletSession.objects.filter(owner__in=owners, observation__isnull=False)
            found |= Q(pk__in=_keys(theirs, MAX_SESSIONS, "-created_at"))
        return qs.filter(found)


def _keys(rows: QuerySet[Any], most: int, *order: str) -> list[Any]:
    return list(rows.order_by(*order).values_list("pk", flat=True)[:most])


class EvidenceFilter(df.FilterSet):
    q = EvidenceSearch(label=_("Search"), max_length=100)
    definition = ObjectFilter(LabletDefinition, field_name="definition_id", label=_("Definition"))
    session = ObjectFilter(LabletSession, field_name="session_id", label=_("Session"))
    counted = FlagFilter(field_name="is_sample", label=_("Counted"))
    not_counted_reason = ChoicesFilter(choices=NotCountedReason.choices, label=_("Exclusion reason"))
    drift = FlagFilter(field_name="session__port_drift_detected", label=_("Port drift"))
    drift_open = FlagFilter(field_name="session__port_drift_open", label=_("Open port drift"))
    observed = PeriodFilter(field_name="observed_at", label=_("Observed"))
    observed_from, observed_to = ends_of_period("observed_at", menu="observed")


_PROVISIONING: Any = ChoicesFilter(
    field_name="assessment__provisioning", choices=ProvisioningClass.choices, label=_("Class")
)
_OBSERVED = "assessment__last_observed_at"
_OBSERVED_FROM, _OBSERVED_TO = ends_of_period(_OBSERVED, menu="observed")
ADDED_FILTERS = (
    AddedFilter(DefinitionFilter, "class", _PROVISIONING),
    AddedFilter(DefinitionFilter, "observed", PeriodFilter(field_name=_OBSERVED, label=_("Observed"))),
    AddedFilter(DefinitionFilter, "observed_from", _OBSERVED_FROM),
    AddedFilter(DefinitionFilter, "observed_to", _OBSERVED_TO),
)
