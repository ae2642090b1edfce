"""Read-only admin of reservations."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from lcm.admin.data_fixes import ReadOnlyAdmin
from scheduling.models import Reservation


@admin.register(Reservation)
class ReservationAdmin(ReadOnlyAdmin):
    note = "A session's reservation ends with the session. Cancel other reservations on their pages."
    note_page = "reservation_list"
    list_display = ("__str__", "phase", "pool", "session", "holder", "slot", "priority", "created_at")
    list_filter = ("phase", "priority", "pool", "created_at")
    list_select_related = ("pool", "session", "slot__pool")
    search_fields = ("id", "holder")
    search_help_text = "The full ID of a reservation or session, or part of the holder's name."
    ordering = ("-created_at", "-id")
    sortable_by = ("created_at",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        found = Q(holder__icontains=text)
        with suppress(ValueError):
            found |= Q(pk=UUID(text)) | Q(session_id=UUID(text))
        return queryset.filter(found), False
