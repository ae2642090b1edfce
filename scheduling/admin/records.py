"""Read-only admin of decisions, ticks, runs and leases."""

from __future__ import annotations

from django.contrib import admin

from lcm.admin.data_fixes import DataFixAdmin, ReadOnlyAdmin
from lcm.domain.resources import RESOURCE_NAMES
from scheduling.models import (
    Decision,
    EndedPart,
    Explanation,
    HandlerFailure,
    Installation,
    LastVerdict,
    Observer,
    ObserverRun,
    ProcessLease,
    QueueOrder,
    ReservationPart,
    SessionLab,
    SimulatedInstance,
    TickRun,
)


@admin.register(TickRun)
class TickAdmin(ReadOnlyAdmin):
    note = "Ticks are kept for two days. Consecutive idle ticks are merged into one row."
    note_page = "pool_list"
    list_display = ("__str__", "started_at", "duration_ms", "counts", "errors")
    list_filter = ("pool", "started_at")
    list_select_related = ("pool",)
    search_fields = ("pool__name",)
    ordering = ("-started_at", "-id")
    sortable_by = ("started_at",)


@admin.register(ObserverRun)
class ObserverRunAdmin(ReadOnlyAdmin):
    note = "Runs are kept for 30 days. Consecutive idle runs are merged into one row."
    note_page = "observer_list"
    list_display = (
        "observer",
        "kind",
        "started_at",
        "duration_ms",
        "success_count",
        "failure_count",
        "error",
    )
    list_filter = ("kind", "started_at")
    search_fields = ("observer",)
    ordering = ("-started_at", "-id")
    sortable_by = ("started_at",)


@admin.register(Observer)
class ObserverAdmin(ReadOnlyAdmin):
    note = "Observers that were late or failed at least once."
    note_page = "observer_list"
    list_display = ("name", "failing_announced_at")
    search_fields = ("name",)
    ordering = ("name",)


@admin.register(HandlerFailure)
class HandlerFailureAdmin(DataFixAdmin):
    note = "Consecutive failures of a handler with a session. Delete a row to reset the count."
    may_add = may_change = False
    list_display = ("handler", "session", "failures", "last_at", "reason")
    list_select_related = ("session",)
    search_fields = ("handler", "reason")
    ordering = ("-last_at", "-id")
    sortable_by = ("last_at",)


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    note = "One row per change of a reservation's outcome. Old rows are deleted by age and number."
    note_page = "decision_list"
    list_display = ("__str__", "at", "pool", "outcome", "position", "slot", "why")
    list_filter = ("outcome", "pool", "at")
    list_select_related = ("reservation", "pool", "slot__pool", "why")
    search_fields = ("reservation__id", "reservation__holder")
    ordering = ("-at", "-id")
    sortable_by = ("at",)


@admin.register(Explanation)
class ExplanationAdmin(ReadOnlyAdmin):
    note = "Wait reasons, shared by decisions and deleted with the last of them."
    note_page = "decision_list"
    list_display = ("message", "main_reason", "slots")
    search_fields = ("message", "main_reason")
    ordering = ("digest",)


@admin.register(LastVerdict)
class LastVerdictAdmin(ReadOnlyAdmin):
    note = "The last verdict on a reservation that was not placed; deleted with the reservation."
    note_page = "queue_list"
    list_display = ("reservation", "summary")
    list_select_related = ("reservation",)
    search_fields = ("reservation__id", "reservation__holder", "summary")
    ordering = ("reservation",)


@admin.register(QueueOrder)
class QueueOrderAdmin(ReadOnlyAdmin):
    note = "The order of waiting reservations in the last cycle."
    note_page = "queue_list"
    list_display = ("__str__", "at")
    list_select_related = ("pool",)
    search_fields = ("pool__name",)
    ordering = ("pool__name",)
    exclude = ("ids",)


@admin.register(ReservationPart)
class ReservationPartAdmin(ReadOnlyAdmin):
    note = "The share of a spread reservation on one slot; deleted when the reservation ends."
    note_page = "reservation_list"
    list_display = ("__str__", "kernels", *RESOURCE_NAMES)
    list_select_related = ("reservation", "slot__pool")
    search_fields = ("slot__pool__name",)
    ordering = ("id",)


@admin.register(EndedPart)
class EndedPartAdmin(ReadOnlyAdmin):
    note = "A slot on which a spread reservation had a part, for timelines."
    note_page = "reservation_list"
    list_display = ("__str__",)
    list_select_related = ("reservation", "slot__pool")
    search_fields = ("slot__pool__name",)
    ordering = ("id",)


@admin.register(SessionLab)
class SessionLabAdmin(ReadOnlyAdmin):
    note = "The lab of a session on a worker, as the last survey of the worker found it."
    note_page = "session_list"
    list_display = ("__str__", "attempt", "observed_at")
    list_select_related = ("session", "slot__pool")
    search_fields = ("lab", "slot__pool__name")
    ordering = ("id",)


@admin.register(ProcessLease)
class LeaseAdmin(DataFixAdmin):
    note = "Exclusive rights of processes to run a tick or another task. If you delete a lease, it ends now."
    may_add = may_change = False
    list_display = ("name", "holder", "expires_at")
    search_fields = ("name", "holder")
    ordering = ("name",)


@admin.register(SimulatedInstance)
class SimulatedInstanceAdmin(DataFixAdmin):
    note = "Instances of the simulated runtime. If you delete an instance, its slot treats it as vanished."
    may_add = may_change = False
    list_display = ("id", "pool", "market", "launched_at", "ended_at", "interrupted_at")
    list_filter = ("market", "launched_at")
    search_fields = ("id", "pool", "slot_id", "token")
    ordering = ("-launched_at", "id")
    sortable_by = ("launched_at",)


@admin.register(Installation)
class InstallationAdmin(ReadOnlyAdmin):
    note = "The ID in the tags of this LCM's instances. A copy needs a new ID: `manage.py installation`."
    list_display = ("key",)
    search_fields = ("key",)
    ordering = ("pk",)
