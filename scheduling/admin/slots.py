"""Admin of slots, launch attempts and ports."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import ngettext_lazy

from lcm.admin.actions import AT_ONCE, confirm_with_form
from lcm.admin.base import AuditedModelAdmin, ReadOnlyAdmin, ReadOnlyInline, actor_of
from lcm.admin.reason_form import AdminReasonForm
from lcm.models.definitions import label_map
from lcm.web.forms import JsonField
from lcm.web.wording import Plural
from scheduling.models import LaunchAttempt, PortAllocation, Slot
from scheduling.services import slots as services

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
    "unanswered_since",
)
WORKER = ("instance_id", "endpoint", "version", "offering", "is_spot")
SIZE = ("cpu_cores", "memory_gb", "storage_gb", "gpu", "max_leases")


class LabelsField(JsonField):
    """A JSON field that accepts an empty object (no labels) but not an empty input."""

    empty_values = [None, ""]

    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else super().prepare_value(value)


class LabelsAdminForm(AdminReasonForm):
    labels = LabelsField(
        widget=forms.Textarea(attrs={"rows": 4, "cols": 60, "spellcheck": "false"}),
        validators=[label_map],
        help_text='New labels of these workers as JSON: {"gpu": "a10"}; {} for none.',
    )
    field_order = ("labels", "reason")


class AttemptInline(ReadOnlyInline):
    model = LaunchAttempt
    fields = ("requested_at", "finished_at", "outcome", "offering", "instance_id", "category", "error")


class PortInline(ReadOnlyInline):
    model = PortAllocation
    fields = ("port", "name", "session", "leaked", "created_at")


@admin.register(Slot)
class SlotAdmin(AuditedModelAdmin):
    note = "Use the actions of this list to change the state and labels of slots."
    note_page = "slot_list"
    may_add = may_delete = False
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
    actions = ("cordon", "uncordon", "label", "drain", "retry", "terminate")
    fieldsets = (
        (None, {"fields": ("id", "pool", "number", "labels")}),
        ("State", {"fields": STATE}),
        ("Worker", {"fields": WORKER}),
        ("Size", {"fields": SIZE}),
        ("Dates", {"fields": ("created_at", "updated_at")}),
    )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow the bulk actions; a single slot is read-only."""
        return super().has_change_permission(request, obj) and obj is None

    @admin.action(description="Cordon selected %(verbose_name_plural)s …", permissions=["change"])
    def cordon(self, request: HttpRequest, queryset: QuerySet[Slot]) -> TemplateResponse | None:
        return self._ask(
            request,
            queryset,
            "Cordon slots",
            "Cordon these slots",
            Plural(ngettext_lazy("%(count)s slot cordoned.", "%(count)s slots cordoned.")),
            services.cordon_slot,
            cordoned=True,
        )

    @admin.action(description="Uncordon selected %(verbose_name_plural)s …", permissions=["change"])
    def uncordon(self, request: HttpRequest, queryset: QuerySet[Slot]) -> TemplateResponse | None:
        return self._ask(
            request,
            queryset,
            "Uncordon slots",
            "Uncordon these slots",
            Plural(ngettext_lazy("%(count)s slot uncordoned.", "%(count)s slots uncordoned.")),
            services.cordon_slot,
            cordoned=False,
        )

    @admin.action(description="Label selected %(verbose_name_plural)s …", permissions=["change"])
    def label(self, request: HttpRequest, queryset: QuerySet[Slot]) -> TemplateResponse | None:
        """Set labels; the form starts with the labels that all selected slots have in common."""
        kept = list(queryset.values_list("labels", flat=True)[:AT_ONCE])
        same = kept[0] if kept and all(each == kept[0] for each in kept) else None
        form = partial(LabelsAdminForm, initial={"labels": same})
        return self._ask(
            request,
            queryset,
            "Label slots",
            "Label these slots",
            Plural(ngettext_lazy("%(count)s slot labelled.", "%(count)s slots labelled.")),
            services.label_slot,
            form_class=form,
        )

    @admin.action(description="Drain selected %(verbose_name_plural)s …", permissions=["change"])
    def drain(self, request: HttpRequest, queryset: QuerySet[Slot]) -> TemplateResponse | None:
        return self._ask(
            request,
            queryset,
            "Drain slots",
            "Drain these slots",
            Plural(ngettext_lazy("%(count)s slot draining.", "%(count)s slots draining.")),
            services.drain_slot,
        )

    @admin.action(description="Retry selected %(verbose_name_plural)s …", permissions=["change"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Slot]) -> TemplateResponse | None:
        return self._ask(
            request,
            queryset,
            "Retry slots",
            "Retry these slots",
            Plural(ngettext_lazy("%(count)s slot available again.", "%(count)s slots available again.")),
            services.retry_slot,
        )

    @admin.action(description="Terminate selected %(verbose_name_plural)s …", permissions=["change"])
    def terminate(self, request: HttpRequest, queryset: QuerySet[Slot]) -> TemplateResponse | None:
        return self._ask(
            request,
            queryset,
            "Terminate slots",
            "Terminate these slots",
            Plural(ngettext_lazy("%(count)s slot terminating.", "%(count)s slots terminating.")),
            services.terminate_slot,
        )

    def _ask(
        self,
        request: HttpRequest,
        queryset: QuerySet[Slot],
        title: str,
        submit: str,
        done: Plural,
        work: Callable[..., Slot],
        form_class: Callable[..., AdminReasonForm] = AdminReasonForm,
        **given: Any,
    ) -> TemplateResponse | None:
        def save(slot: Slot, values: dict[str, Any]) -> None:
            work(slot=slot, actor=actor_of(request), now=timezone.now(), **given, **values)

        return confirm_with_form(
            self,
            request,
            queryset.select_related("pool"),
            form_class=form_class,
            title=title,
            submit=submit,
            save=save,
            done=done,
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
class PortAdmin(AuditedModelAdmin):
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
