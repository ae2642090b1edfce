"""Read-only admin of usage and fair share; observers and services write them."""

from __future__ import annotations

from django.contrib import admin

from fairshare.models import (
    Allocation,
    FairShare,
    FairShareCalculation,
    FairSharePolicy,
    UsageBatch,
    UsageBucket,
    UsageCheck,
    UsageRecord,
)
from lcm.admin.data_fixes import ReadOnlyAdmin
from lcm.domain.resources import RESOURCE_NAMES


@admin.register(Allocation)
class AllocationAdmin(ReadOnlyAdmin):
    note = "Resources that each kernel held in each attempt, in hundredths."
    note_page = "usage_explorer"
    list_display = (
        "id",
        "kernel_id",
        "attempt",
        "pool",
        "started_at",
        "ended_at",
        "recorded_until",
        "settled",
    )
    list_filter = ("settled",)
    search_fields = ("=kernel_id", "=session_id")
    ordering = ("-id",)
    sortable_by = ("id",)


@admin.register(UsageBatch)
class UsageBatchAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "recorded_at",
        "record_count",
        "first_day",
        "last_day",
        "aggregated_at",
        "removed_at",
    )
    list_filter = ("recorded_at",)
    search_fields = ("=id",)
    ordering = ("-id",)
    sortable_by = ("id",)


@admin.register(UsageRecord)
class UsageRecordAdmin(ReadOnlyAdmin):
    note = "Hundredths of an amount × milliseconds, written by the observer usage-record."
    note_page = "observer_list"
    list_display = (
        "id",
        "allocation",
        "starts_at",
        "period_ms",
        *RESOURCE_NAMES,
    )
    list_select_related = ("allocation",)
    search_fields = ("=allocation__kernel_id",)
    ordering = ("-id",)
    sortable_by = ("id",)


@admin.register(UsageBucket)
class UsageBucketAdmin(ReadOnlyAdmin):
    note = "Hundredths of an amount × milliseconds per UTC day; manage.py rebuild_usage rebuilds them."
    note_page = "usage_explorer"
    list_display = ("day", "pool", "level", "subject_id", *RESOURCE_NAMES)
    list_filter = ("level", "day")
    search_fields = ("=subject_id", "pool")
    ordering = ("-day", "-id")
    sortable_by = ("day",)


@admin.register(UsageCheck)
class UsageCheckAdmin(ReadOnlyAdmin):
    list_display = ("checked_at", "first_day", "last_day", "record_count", "difference_count")
    ordering = ("-checked_at", "-id")
    search_fields = ("=id",)
    sortable_by = ("checked_at",)


@admin.register(FairSharePolicy)
class FairSharePolicyAdmin(ReadOnlyAdmin):
    note = "Change policies on the Fair share page, which previews the effect on ranks."
    note_page = "fair_share"
    list_display = ("pool", "half_life_days", "lookback_days", "normalisation", "order", "dampening_factor")
    list_select_related = ("pool",)
    search_fields = ("pool__name",)
    ordering = ("pool__name",)


@admin.register(FairShareCalculation)
class FairShareCalculationAdmin(ReadOnlyAdmin):
    list_display = ("pool", "at", "first_day", "last_day", "subject_count", "duration_ms")
    list_select_related = ("pool",)
    search_fields = ("pool__name",)
    ordering = ("-at", "-id")
    sortable_by = ("at",)


@admin.register(FairShare)
class FairShareAdmin(ReadOnlyAdmin):
    note = "Change weights on the Fair share page, which previews the effect on ranks."
    note_page = "fair_share"
    list_display = ("pool", "level", "subject_id", "own_weight", "norm_share", "usage", "factor", "rank")
    list_filter = ("level", "pool")
    list_select_related = ("pool",)
    search_fields = ("=subject_id",)
    ordering = ("-id",)
    sortable_by = ("id",)
