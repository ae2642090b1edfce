"""Admin of slots, launch attempts and ports."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from lcm.admin.data_fixes import DataFixAdmin, ReadOnlyAdmin, ReadOnlyInline
from lcm.domain.resources import RESOURCE_NAMES
from scheduling.models import LaunchAttempt, PortAllocation, Slot

STATE = (
    "state",
    "reason",
    "cordoned",
    "lease_count",
    "last_state_change",
    "state_deadline",
    "idle_since",
    "interruption_deadline",
    "last_heartbeat",
    "heartbeat_lost_at",
    "unanswered_since",
)
WORKER = ("instance_id", "endpoint", "version", "offering", "is_spot")
SIZE = (*RESOURCE_NAMES, "max_leases")


class AttemptInline(ReadOnlyInline):
    model = LaunchAttempt
    fields = ("requested_at", "finished_at", "outcome", "offering", "instance_id", "category", "error")


class PortInline(ReadOnlyInline):
    model = PortAllocation
    fields = ("port", "name", "session", "leaked", "created_at")


@admin.register(Slot)
class SlotAdmin(ReadOnlyAdmin):
    note = "Cordon, drain, label, retry and terminate slots on the Slots page."
    note_page = "slot_list"
    list_display = (
        "name",
        "state",
        "cordoned",
        "instance_id",
        "offering",
        "lease_count",
        "last_state_change",
    )
    list_filter = ("state", "cordoned", "is_spot", "pool")
    list_select_related = ("pool",)
    search_fields = ("pool__name", "instance_id", "endpoint")
    ordering = ("pool__name", "number")
    sortable_by = ("state", "lease_count", "last_state_change")
    inlines = (AttemptInline, PortInline)
    fieldsets = (
        (None, {"fields": ("id", "pool", "number", "labels")}),
        ("State", {"fields": STATE}),
        ("Worker", {"fields": WORKER}),
        ("Size", {"fields": SIZE}),
        ("Dates", {"fields": ("created_at", "updated_at")}),
    )


@admin.register(LaunchAttempt)
class AttemptAdmin(ReadOnlyAdmin):
    note = "The tick opens an attempt and the launch closes it."
    note_page = "slot_list"
    list_display = ("__str__", "slot", "outcome", "offering", "category", "requested_at", "finished_at")
    list_filter = ("outcome", "category", "requested_at")
    list_select_related = ("slot__pool",)
    search_fields = ("token", "instance_id", "slot__pool__name")
    ordering = ("-requested_at", "-id")
    sortable_by = ("requested_at",)


@admin.register(PortAllocation)
class PortAdmin(DataFixAdmin):
    note = "Sessions reserve and release ports. You can delete a leaked port that is known to be free."
    note_page = "slot_list"
    may_add = may_change = False
    list_display = ("port", "slot", "name", "session", "leaked", "created_at")
    list_filter = ("leaked", "created_at")
    list_select_related = ("slot__pool", "session")
    search_fields = ("name", "slot__pool__name")
    ordering = ("slot_id", "port")
    sortable_by = ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or obj.leaked)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        super().delete_queryset(request, queryset.filter(leaked=True))
