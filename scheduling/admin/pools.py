"""Pools, edited through the service: a wrong runtime setting is refused here as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from lcm.admin.logged import LoggedAdmin, actor_of
from lcm.errors import InvalidInput
from lcm.services.changelog import fields_of
from scheduling.framework.configuration import WrongConfiguration, read_configuration
from scheduling.models import Pool
from scheduling.pages.pool_forms import GROUPS
from scheduling.runtimes.registry import runtime_problems
from scheduling.services.pools import EDITABLE, update_pool

if TYPE_CHECKING:
    PoolModelForm = forms.ModelForm[Pool]
else:
    PoolModelForm = forms.ModelForm

LAUNCHING = ("stopped_reason", "backoff_until", "failures", "refused_offerings")


class PoolForm(PoolModelForm):
    def clean_scheduler(self) -> str:
        text = str(self.cleaned_data["scheduler"])
        try:
            read_configuration(text)
        except WrongConfiguration as error:
            raise forms.ValidationError(error.sentences) from error
        return text

    def clean_runtime_settings(self) -> dict[str, Any]:
        settings = self.cleaned_data["runtime_settings"] or {}
        problems = runtime_problems(self.instance.runtime, settings)
        if problems:
            raise forms.ValidationError(list(problems.values()))
        return dict(settings)


def _groups() -> Iterator[tuple[str, Any]]:
    for title, names in GROUPS.items():
        yield title, {"fields": names}


@admin.register(Pool)
class PoolAdmin(LoggedAdmin):
    note = "Pools are made and edited on the Capacity page, which shows what a change does."
    note_page = "pool_list"
    may_add = False
    form = PoolForm
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
        """By the service, which ends a stop and a back-off and writes the log."""
        changes = {name: form.cleaned_data[name] for name in form.changed_data if name in EDITABLE}
        fresh = Pool.objects.get(pk=obj.pk)
        try:
            update_pool(pool=fresh, actor=actor_of(request), reason="data fix", **changes)
        except InvalidInput as error:
            self.message_user(request, error.message, "ERROR")
        form.before = fields_of(Pool.objects.get(pk=obj.pk))
