"""Read-only admin of decisions, ticks, runs and leases."""

from __future__ import annotations

from django.contrib import admin

from lcm.admin.base import AuditedModelAdmin, ReadOnlyAdmin
from scheduling.models import (
    Decision,
    Explanation,
    HandlerFailure,
    Installation,
    LastVerdict,
    ObserverRun,
    ProcessLease,
    QueueOrder,
    ReservationPart,
    SimulatedInstance,
    TickRun,
)


@admin.register(TickRun)
class TickAdmin(ReadOnlyAdmin):
    note = "Ticks are kept for two days; quiet ticks in a row are one row."
    note_page = "pool_list"
    list_display = ("__str__", "started_at", "duration_ms", "counts", "errors")
    list_filter = ("pool", "started_at")
    list_select_related = ("pool",)
    search_fields = ("pool__name",)
    ordering = ("-started_at", "-id")
    sortable_by = ("started_at",)


@admin.register(ObserverRun)
class ObserverRunAdmin(ReadOnlyAdmin):
    note = "Runs are kept for 30 days; quiet runs in a row are one row."
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


@admin.register(HandlerFailure)
class HandlerFailureAdmin(AuditedModelAdmin):
    note = "How often a handler has failed with a session in a row. Deleting one lets it begin anew."
    may_add = may_change = False
    list_display = ("handler", "session", "failures", "last_at", "reason")
    list_select_related = ("session",)
    search_fields = ("handler", "reason")
    ordering = ("-last_at", "-id")
    sortable_by = ("last_at",)


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    note = "One row each time a cycle says something new about a reservation; old ones go by age and number."
    note_page = "decision_list"
    list_display = ("__str__", "at", "pool", "outcome", "position", "slot", "why")
    list_filter = ("outcome", "pool", "at")
    list_select_related = ("reservation", "pool", "slot__pool", "why")
    search_fields = ("reservation__id", "reservation__holder")
    ordering = ("-at", "-id")
    sortable_by = ("at",)


@admin.register(Explanation)
class ExplanationAdmin(ReadOnlyAdmin):
    note = "Why something waits; shared by all decisions it holds for, and gone with the last of them."
    note_page = "decision_list"
    list_display = ("sentence", "dominant", "slots")
    search_fields = ("sentence", "dominant")
    ordering = ("digest",)


@admin.register(LastVerdict)
class LastVerdictAdmin(ReadOnlyAdmin):
    note = "What the last cycle said of a reservation that it did not place; it goes with the reservation."
    note_page = "queue_list"
    list_display = ("reservation", "summary")
    list_select_related = ("reservation",)
    search_fields = ("reservation__id", "reservation__holder", "summary")
    ordering = ("reservation",)


@admin.register(QueueOrder)
class QueueOrderAdmin(ReadOnlyAdmin):
    note = "The order in which the last cycle saw those who wait."
    note_page = "queue_list"
    list_display = ("__str__", "at")
    list_select_related = ("pool",)
    search_fields = ("pool__name",)
    ordering = ("pool__name",)
    exclude = ("ids",)


@admin.register(ReservationPart)
class ReservationPartAdmin(ReadOnlyAdmin):
    note = "What a reservation that is spread has on one slot; it ends with the reservation."
    note_page = "reservation_list"
    list_display = ("__str__", "kernels", "cpu_cores", "memory_gb", "storage_gb", "gpu")
    list_select_related = ("reservation", "slot__pool")
    search_fields = ("slot__pool__name",)
    ordering = ("id",)


@admin.register(ProcessLease)
class LeaseAdmin(AuditedModelAdmin):
    note = "Who runs a tick, a launch or a look at a pool. A lease ends by itself; deleting one ends it now."
    may_add = may_change = False
    list_display = ("name", "holder", "expires_at")
    search_fields = ("name", "holder")
    ordering = ("name",)


@admin.register(SimulatedInstance)
class SimulatedInstanceAdmin(AuditedModelAdmin):
    note = "The world of the simulated runtime. An instance that is deleted has vanished for its slot."
    may_add = may_change = False
    list_display = ("id", "pool", "market", "launched_at", "ended_at", "interrupted_at")
    list_filter = ("market", "launched_at")
    search_fields = ("id", "pool", "slot_id", "token")
    ordering = ("-launched_at", "id")
    sortable_by = ("launched_at",)


@admin.register(Installation)
class InstallationAdmin(ReadOnlyAdmin):
    note = "The id of this LCM's instances. A copy takes a new one: `manage.py installation`."
    list_display = ("key",)
    search_fields = ("key",)
    ordering = ("pk",)
