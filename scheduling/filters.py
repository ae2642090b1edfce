"""One FilterSet per list, used by its page and its API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import django_filters as df
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, LabletDefinition, LabletSession, Priority
from lcm.selectors.names import by_id
from lcm.selectors.sessions import search_sessions
from lcm.web.filter_inputs import MomentFilter, UsernameFilter
from lcm.web.filter_time import filter_now
from lcm.web.filters import ChoicesFilter, EndedFilter, FlagFilter, ObjectFilter, SearchFilter
from lcm.web.period_filters import PeriodFilter, ends_of_period
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
from scheduling.services.slots import STATE_EVENTS, STEP_EVENTS

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class PoolFilter(df.FilterSet):
    q = SearchFilter("name", "description", "system", "runtime")
    state = ChoicesFilter(choices=list(POOL_STATE_NAMES.items()), label=_("State"), method="in_state")
    system = df.CharFilter(label=_("System"), max_length=30)
    runtime = df.CharFilter(label=_("Runtime"), max_length=30)

    def in_state(self, qs: QuerySet[Pool], name: str, value: list[str]) -> QuerySet[Pool]:
        return qs.alias(is_in=pool_state(filter_now())).filter(is_in__in=value) if value else qs


class PoolChoices(df.FilterSet):
    """A choice of pools that is queried once per form."""

    pool = ChoicesFilter(label=_("Pool"), method="in_pools")

    def __init__(self, *args: object, **kwargs: Any) -> None:
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
    created_from, created_to = ends_of_period("created_at", menu="created")

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
    created_from, created_to = ends_of_period("created_at", menu="created")

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
    at_from, at_to = ends_of_period("at", menu="at")

    def search(self, qs: QuerySet[Decision], name: str, value: str) -> QuerySet[Decision]:
        """Search by the start of the reservation's or session's id, or by holder."""
        found = by_id(value, "reservation") | by_id(value, "reservation__session")
        return qs.filter(found | Q(reservation__holder__icontains=value))


class TickFilter(PoolChoices):
    q = SearchFilter("pool__name")
    failed = FlagFilter(label=_("With errors"), method="only_failed")
    started = PeriodFilter(field_name="started_at", label=_("Started"))
    started_from, started_to = ends_of_period("started_at", menu="started")

    def only_failed(self, qs: QuerySet[TickRun], name: str, value: str) -> QuerySet[TickRun]:
        return qs.exclude(errors={}) if value == "true" else qs.filter(errors={})


class RunFilter(df.FilterSet):
    q = SearchFilter("observer", "error")
    observer = ChoicesFilter(label=_("Observer"))
    failed = FlagFilter(label=_("With failures"), method="only_failed")
    started = PeriodFilter(field_name="started_at", label=_("Started"))
    started_from, started_to = ends_of_period("started_at", menu="started")

    def __init__(self, *args: object, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.filters["observer"].extra["choices"] = [(name, name) for name in observer_names()]

    def only_failed(self, qs: QuerySet[ObserverRun], name: str, value: str) -> QuerySet[ObserverRun]:
        return qs.filter(has_failed()) if value == "true" else qs.exclude(has_failed())


_SLOT_STATES = (*STATE_EVENTS.values(), *STEP_EVENTS.values(), "slot.cordoned", "slot.uncordoned")
# Kinds of entries of a timeline.
KINDS: dict[str, tuple[StrOrPromise, Q]] = {
    "sessions": (_("Sessions"), Q(event__startswith="session.") | Q(event__startswith="reservation.")),
    "states": (_("Slot and pool states"), Q(event__in=_SLOT_STATES) | Q(event__startswith="pool.")),
    "heartbeats": (_("Heartbeats"), Q(event__startswith="slot.heartbeat")),
    "interruptions": (_("Interruptions"), Q(event__endswith=".interrupted")),
    "ports": (_("Ports"), Q(event__startswith="slot.ports_")),
    "drift": (_("Port drift"), Q(event__startswith="observation.port_drift")),
    "observations": (
        _("Observations"),
        Q(event__in=("observation.requested", "observation.resources_observed")),
    ),
    "people": (_("Changes by people"), Q(user__isnull=False)),
}


class TimelineFilter(df.FilterSet):
    q = SearchFilter("message", "object_label", "actor", "reason")
    kind = df.MultipleChoiceFilter(
        choices=[(name, label) for name, (label, _rows) in KINDS.items()], label=_("Kind"), method="of_kinds"
    )
    person = UsernameFilter(field_name="user", label=_("Person"), menu="person", max_length=150)
    # Without an input: the page has its own choice of a time.
    since = MomentFilter(field_name="at", lookup_expr="gte", label=_("From"))
    until = MomentFilter(field_name="at", lookup_expr="lt", label=_("To"))

    class Meta:
        model = ChangeLog
        fields: list[str] = []

    def of_kinds(self, qs: QuerySet[ChangeLog], name: str, value: list[str]) -> QuerySet[ChangeLog]:
        found = Q()
        for kind in value:
            found |= KINDS[kind][1]
        return qs.filter(found)
