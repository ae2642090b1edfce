"""Read-only admin of pools."""

from __future__ import annotations

from django.contrib import admin

from lcm.admin.data_fixes import ReadOnlyAdmin
from scheduling.models import Pool


@admin.register(Pool)
class PoolAdmin(ReadOnlyAdmin):
    note = "Create, edit and delete pools on the Capacity page, which shows the effect of a change."
    note_page = "pool_list"
    list_display = ("name", "system", "runtime", "enabled", "min_slots", "warm_slots", "max_slots")
    list_filter = ("enabled", "spot_policy")
    search_fields = ("name", "description", "system", "runtime")
    ordering = ("name",)
    sortable_by = ("name", "max_slots")
