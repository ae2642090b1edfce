"""Admin of pools. It saves through the pool services, so their validation applies here as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from lcm.admin.base import AuditedModelAdmin, actor_of
from lcm.admin.reason_form import reason_of
from lcm.domain.errors import InvalidInput
from lcm.services.changelog import loggable_fields
from scheduling.models import Pool
from scheduling.pages.pool_forms import GROUPS
from scheduling.services.pools import EDITABLE, check_pool, update_pool

if TYPE_CHECKING:
    PoolModelForm = forms.ModelForm[Pool]
else:
    PoolModelForm = forms.ModelForm

LAUNCHING = (
    "stopped_reason", "stopped_at", "backoff_until", "backoff_since", "failures", "refused_offerings",
    "failed_workers",
)  # fmt: skip


class PoolAdminForm(PoolModelForm):
    """The fields of the model; shows the errors of the pool services as form errors."""

    def clean_runtime_settings(self) -> Any:
        settings = self.cleaned_data["runtime_settings"]
        return {} if settings is None else settings

    def full_clean(self) -> None:
        super().full_clean()
        if not self.is_bound or self.errors:
            return
        # Lock the pool, so that the service saves the values that were validated.
        pool = Pool.objects.select_for_update().get(pk=self.instance.pk)
        changes = self.changes()
        for name, value in changes.items():
            setattr(pool, name, value)
        try:
            check_pool(pool, changes)
        except InvalidInput as error:
            self._show(error)

    def changes(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in self.changed_data if name in EDITABLE}

    def _show(self, error: InvalidInput) -> None:
        """Attach an error to its form field: `runtime_settings.region` belongs to `runtime_settings`."""
        for name, texts in error.fields.items():
            field = name.split(".")[0]
            self.add_error(field if field in self.fields else None, texts)


def _groups() -> Iterator[tuple[Any, Any]]:
    for title, names in GROUPS:
        yield title, {"fields": names}


@admin.register(Pool)
class PoolAdmin(AuditedModelAdmin):
    note = "Create and edit pools on the Capacity page, which shows the effect of a change."
    note_page = "pool_list"
    may_add = False
    form = PoolAdminForm
    list_display = ("name", "system", "runtime", "enabled", "min_slots", "warm_slots", "max_slots")
    list_filter = ("enabled", "spot_policy")
    search_fields = ("name", "description", "system", "runtime")
    ordering = ("name",)
    sortable_by = ("name", "max_slots")
    fieldsets = (
        (None, {"fields": ("name", "system", "runtime")}),
        *_groups(),
        ("Scheduler", {"fields": ("scheduler",)}),
        ("Launching", {"fields": LAUNCHING}),
        ("Dates", {"fields": ("created_at", "updated_at")}),
    )
    readonly_fields = ("name", "system", "runtime", *LAUNCHING, "created_at", "updated_at")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save through the service, which also resets a stop or back-off and writes the change log."""
        fresh = Pool.objects.get(pk=obj.pk)
        update_pool(pool=fresh, actor=actor_of(request), reason=reason_of(request), **form.changes())
        form.before = loggable_fields(Pool.objects.get(pk=obj.pk))
