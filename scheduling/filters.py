"""One FilterSet per list, used by its page and its API."""

from __future__ import annotations

from typing import Any

import django_filters as df
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletDefinition, LabletSession, Priority
from lcm.selectors.names import by_id
from lcm.selectors.sessions import search_sessions
from lcm.web.filter_time import filter_now
from lcm.web.filters import ChoicesFilter, EndedFilter, FlagFilter, ObjectFilter, PeriodFilter, SearchFilter
from scheduling.models import (
    ACTIVE_PHASES,
    Decision,
    DecisionOutcome,
    ObserverRun,
    Phase,
    Pool,
    Reservation,
    Slot,
    SlotState,
    TickRun,
)
from scheduling.selectors.observers import has_failed, observer_names
from scheduling.selectors.pool_overview import is_overdue, is_silent
from scheduling.selectors.pools import POOL_STATE_NAMES, pool_names, pool_state
from scheduling.selectors.slots import search_slots


class PoolFilter(df.FilterSet):  # type: ignore[misc]
    q = SearchFilter("name", "description", "system", "runtime")
    state = ChoicesFilter(choices=list(POOL_STATE_NAMES.items()), label=_("State"), method="in_state")
    system = df.CharFilter(label=_("System"), max_length=30)
    runtime = df.CharFilter(label=_("Runtime"), max_length=30)

    class Meta:
        model = Pool
        fields: list[str] = []

    def in_state(self, qs: QuerySet[Pool], name: str, value: list[str]) -> QuerySet[Pool]:
        return qs.alias(is_in=pool_state(filter_now())).filter(is_in__in=value) if value else qs


class PoolChoices(df.FilterSet):  # type: ignore[misc]
    """A choice of pools that is queried once per form."""

    pool = ChoicesFilter(label=_("Pool"), method="in_pools")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.filters["pool"].extra["choices"] = [(name, name) for name in pool_names()]

    def in_pools(self, qs: QuerySet[Any], name: str, value: list[str]) -> QuerySet[Any]:
        """Filter by pool ids, the first column of the indexes."""
        if not value:
            return qs
        return qs.filter(pool__in=list(Pool.objects.filter(name__in=value).values_list("pk", flat=True)))


class SlotFilter(PoolChoices):
    q = df.CharFilter(label=_("Search"), max_length=100, method="search")
    state = ChoicesFilter(choices=SlotState.choices, label=_("State"))
    cordoned = FlagFilter(label=_("Cordoned"))
    is_spot = FlagFilter(label=_("Spot"))
    interrupted = FlagFilter(label=_("Interrupted"), method="only_interrupted")
    overdue = FlagFilter(label=_("Overdue"), method="only_overdue")
    silent = FlagFilter(label=_("Silent"), method="only_silent")

    class Meta:
        model = Slot
        fields: list[str] = []

    def search(self, qs: QuerySet[Slot], name: str, value: str) -> QuerySet[Slot]:
        return search_slots(qs, value)

    def only_interrupted(self, qs: QuerySet[Slot], name: str, value: str) -> QuerySet[Slot]:
        return qs.filter(interruption_deadline__isnull=value != "true")

    def only_overdue(self, qs: QuerySet[Slot], name: str, value: str) -> QuerySet[Slot]:
        overdue = is_overdue(filter_now())
        return qs.filter(overdue) if value == "true" else qs.exclude(overdue)

    def only_silent(self, qs: QuerySet[Slot], name: str, value: str) -> QuerySet[Slot]:
        silent = is_silent(filter_now())
        return qs.filter(silent) if value == "true" else qs.exclude(silent)


class ReservationFilter(PoolChoices):
    q = df.CharFilter(label=_("Search"), max_length=100, method="search")
    phase = ChoicesFilter(choices=Phase.choices, label=_("Phase"))
    active = EndedFilter(method="only_active")
    priority = ChoicesFilter(choices=Priority.choices, label=_("Priority"))
    slot = ObjectFilter(Slot, field_name="slot_id", label=_("Slot"))
    session = ObjectFilter(LabletSession, field_name="session_id", label=_("Session"))
    holder = df.CharFilter(label=_("Holder"), max_length=100)
    created = PeriodFilter(field_name="created_at", label=_("Requested"))

    class Meta:
        model = Reservation
        fields: list[str] = []

    def search(self, qs: QuerySet[Reservation], name: str, value: str) -> QuerySet[Reservation]:
        """Search by the start of the reservation's or session's id, or by holder."""
        return qs.filter(Q(holder__icontains=value) | by_id(value) | by_id(value, "session"))

    def only_active(self, qs: QuerySet[Reservation], name: str, value: str) -> QuerySet[Reservation]:
        return qs.filter(phase__in=ACTIVE_PHASES) if value == "true" else qs.exclude(phase__in=ACTIVE_PHASES)


class QueueFilter(PoolChoices):
    q = df.CharFilter(label=_("Search"), max_length=100, method="search")
    priority = ChoicesFilter(choices=Priority.choices, label=_("Priority"))
    outcome = ChoicesFilter(
        choices=[each for each in DecisionOutcome.choices if each[0] != DecisionOutcome.PLACED],
        label=_("Last decision"),
        method="decided",
    )
    definition = ObjectFilter(LabletDefinition, field_name="session__definition_id", label=_("Definition"))
    created = PeriodFilter(field_name="created_at", label=_("Requested"))

    class Meta:
        model = Reservation
        fields: list[str] = []

    def search(self, qs: QuerySet[Reservation], name: str, value: str) -> QuerySet[Reservation]:
        """Search by holder, or with the search of sessions."""
        pending = LabletSession.objects.filter(status=SessionStatus.PENDING)
        sessions = search_sessions(pending, value).order_by().values("pk")
        return qs.filter(Q(holder__icontains=value) | Q(session__in=sessions))

    def decided(self, qs: QuerySet[Reservation], name: str, value: list[str]) -> QuerySet[Reservation]:
        found = Q(pk__in=[])
        for outcome in value:
            found |= Q(last_verdict__summary__startswith=outcome)
        return qs.filter(found) if value else qs


class DecisionFilter(PoolChoices):
    q = df.CharFilter(label=_("Search"), max_length=100, method="search")
    outcome = ChoicesFilter(choices=DecisionOutcome.choices, label=_("Outcome"))
    tick = df.UUIDFilter(field_name="tick_id", label=_("Tick"))
    reservation = ObjectFilter(Reservation, field_name="reservation_id", label=_("Reservation"))
    session = ObjectFilter(LabletSession, field_name="reservation__session_id", label=_("Session"))
    at = PeriodFilter(field_name="at", label=_("Decided"))

    class Meta:
        model = Decision
        fields: list[str] = []

    def search(self, qs: QuerySet[Decision], name: str, value: str) -> QuerySet[Decision]:
        """Search by the start of the reservation's or session's id, or by holder."""
        found = by_id(value, "reservation") | by_id(value, "reservation__session")
        return qs.filter(found | Q(reservation__holder__icontains=value))


class TickFilter(PoolChoices):
    q = SearchFilter("pool__name")
    failed = FlagFilter(label=_("With errors"), method="only_failed")
    started = PeriodFilter(field_name="started_at", label=_("Started"))

    class Meta:
        model = TickRun
        fields: list[str] = []

    def only_failed(self, qs: QuerySet[TickRun], name: str, value: str) -> QuerySet[TickRun]:
        return qs.exclude(errors={}) if value == "true" else qs.filter(errors={})


class RunFilter(df.FilterSet):  # type: ignore[misc]
    q = SearchFilter("observer", "error")
    observer = ChoicesFilter(label=_("Observer"))
    failed = FlagFilter(label=_("With failures"), method="only_failed")
    started = PeriodFilter(field_name="started_at", label=_("Started"))

    class Meta:
        model = ObserverRun
        fields: list[str] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.filters["observer"].extra["choices"] = [(name, name) for name in observer_names()]

    def only_failed(self, qs: QuerySet[ObserverRun], name: str, value: str) -> QuerySet[ObserverRun]:
        return qs.filter(has_failed()) if value == "true" else qs.exclude(has_failed())
