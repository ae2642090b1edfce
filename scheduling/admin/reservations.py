"""Admin of reservations: view, release and cancel."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import ngettext_lazy

from lcm.admin.actions import apply_to_each, confirm_with_form
from lcm.admin.base import AuditedModelAdmin, actor_of
from lcm.admin.reason_form import AdminReasonForm
from lcm.web.wording import Plural
from scheduling.models import Reservation
from scheduling.services.reservations import cancel_reservation, release_reservation


@admin.register(Reservation)
class ReservationAdmin(AuditedModelAdmin):
    note = "A session's reservation ends with the session. The actions end other reservations."
    note_page = "reservation_list"
    may_add = may_delete = False
    list_display = ("__str__", "phase", "pool", "session", "holder", "slot", "priority", "created_at")
    list_filter = ("phase", "priority", "pool", "created_at")
    list_select_related = ("pool", "session", "slot__pool")
    search_fields = ("id", "holder")
    search_help_text = "The full id of a reservation or session, or part of the holder's name."
    ordering = ("-created_at", "-id")
    sortable_by = ("created_at",)
    actions = ("release", "cancel")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow the bulk actions; a single reservation is read-only."""
        return super().has_change_permission(request, obj) and obj is None

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

    @admin.action(description="Release selected %(verbose_name_plural)s", permissions=["change"])
    def release(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> None:
        def save(reservation: Reservation) -> None:
            release_reservation(reservation=reservation, actor=actor_of(request), now=timezone.now())

        apply_to_each(
            self,
            request,
            queryset,
            save=save,
            done=Plural(ngettext_lazy("%(count)s reservation released.", "%(count)s reservations released.")),
        )

    @admin.action(description="Cancel selected %(verbose_name_plural)s …", permissions=["change"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Reservation]) -> TemplateResponse | None:
        def save(reservation: Reservation, values: dict[str, Any]) -> None:
            cancel_reservation(reservation=reservation, actor=actor_of(request), now=timezone.now(), **values)

        return confirm_with_form(
            self,
            request,
            queryset,
            form_class=AdminReasonForm,
            title="Cancel reservations",
            submit="Cancel these reservations",
            save=save,
            done=Plural(
                ngettext_lazy("%(count)s reservation cancelled.", "%(count)s reservations cancelled.")
            ),
        )
