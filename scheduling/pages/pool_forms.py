"""Forms of a pool: the fields of the model, in groups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Self

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from lcm.domain.resources import RESOURCE_NAMES, RESOURCES
from lcm.models.messages import lazy_text
from lcm.web.durations import SecondsField
from lcm.web.forms import PageForm, ReasonForm
from scheduling.capacity.runtimes.registry import runtime_names
from scheduling.models import Pool
from scheduling.pages.runtime_settings import (
    RuntimeSettingsField,
    RuntimeSettingsWidget,
    without_blanks,
)
from scheduling.pages.schedulers import known_plugins
from scheduling.pages.supply import display_name
from scheduling.placement.framework.configuration import MAX_CHARACTERS
from scheduling.placement.framework.plugin import rejected_plugins
from scheduling.services.worker_check import check_worker

# Titles and fields of the groups.
GROUPS = (
    (_("Pool"), ("description", "enabled")),
    (
        _("Number of slots"),
        (
            "min_slots",
            "warm_slots",
            "max_slots",
            "max_leases",
            "idle_seconds",
            "target_wait_seconds",
        ),
    ),
    (_("Slot capacity"), (*RESOURCE_NAMES, "first_port", "last_port")),
    (_("Supply"), ("spot_policy", "runtime_settings")),
    (
        _("Time limits"),
        (
            "launch_timeout",
            "boot_timeout",
            "binding_timeout",
            "drain_timeout",
            "terminate_timeout",
        ),
    ),
)
EDITED = tuple(name for _title, names in GROUPS for name in names)
DURATIONS = ("idle_seconds", "target_wait_seconds", *GROUPS[-1][1])
LABELS: dict[str, Any] = {
    "name": _("Name"),
    "system": _("System"),
    "description": _("Description"),
    "enabled": _("Enabled"),
    "min_slots": _("Minimum slots"),
    "warm_slots": _("Warm slots"),
    "max_slots": _("Maximum slots"),
    "max_leases": _("Leases per slot"),
    "idle_seconds": _("Idle time"),
    "target_wait_seconds": _("Wait target"),
    **{each.name: lazy_text(each.label_with_unit) for each in RESOURCES},
    "first_port": _("First port"),
    "last_port": _("Last port"),
    "spot_policy": _("Market"),
    "runtime_settings": _("Runtime settings"),
    "launch_timeout": _("Launch"),
    "boot_timeout": _("Boot"),
    "binding_timeout": _("Bind"),
    "drain_timeout": _("Drain"),
    "terminate_timeout": _("Terminate"),
}
HELP: dict[str, Any] = {
    "name": _("Lowercase letters, digits and hyphens."),
    "system": _("System of its workers."),
    "enabled": _("A disabled pool accepts no new sessions and launches nothing."),
    "min_slots": _("Slots kept without demand."),
    "warm_slots": _("Empty, ready slots kept for the next session."),
    "max_slots": _("For demand, minimum and warm slots together."),
    "max_leases": _("Sessions on one slot at the same time."),
    "idle_seconds": _("Time after which a slot without sessions is drained: 90 s, 10 min, 1 h."),
    "target_wait_seconds": _("The overview shows sessions that wait longer."),
    "first_port": _("First port that sessions on a slot can use."),
    "last_port": _("Last port, inclusive."),
}
DEFAULT_RUNTIME = "simulated"
NOT_JSON = _('This is not valid JSON. Enter an object such as {"boot_seconds": 20}, or leave it empty.')


class PoolFields(PageForm):
    """The fields of the model; the service validates them."""

    leading: tuple[str, ...] = ()

    def __init__(self, *args: object, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        runtime = self.data.get("runtime") or self.initial.get("runtime") or DEFAULT_RUNTIME
        # The runtime of an existing pool does not change.
        if "runtime" not in self.leading:
            runtime = self.initial.get("runtime", DEFAULT_RUNTIME)
        self.fields = {**_model_fields(self.leading, runtime), **self.fields}

    @classmethod
    def draft(cls, data: Mapping[str, Any], initial: Mapping[str, Any]) -> Self:
        """Return the form as entered, without validation: with one more row, or the result of a test."""
        form = cls(initial={**initial, "runtime": data.get("runtime") or initial.get("runtime")})
        widget = form.fields["runtime_settings"].widget
        entered = {
            name: each.widget.value_from_datadict(data, {}, name) for name, each in form.fields.items()
        }
        if widget.options is not None:
            entered["runtime_settings"] = settings = widget.read(data, "runtime_settings")
            rows = settings.get(data.get("add_row", ""))
            if isinstance(rows, list):
                rows.append({})
            widget.result = _test_result(data.get("test_worker", ""), settings.get("workers", []))
        form.initial.update(entered)
        return form

    def clean_runtime_settings(self) -> dict[str, Any]:
        settings = self.cleaned_data["runtime_settings"]
        if settings in (None, ""):
            return {}
        if not isinstance(settings, dict):
            raise forms.ValidationError(NOT_JSON)
        stored: dict[str, Any] = self.initial.get("runtime_settings") or {}
        return stored if settings == without_blanks(stored) else settings

    def groups(self) -> Iterator[tuple[str, list[Any]]]:
        """Return the fields in the groups of the page."""
        leading = self.leading
        for title, names in GROUPS:
            yield str(title), [self[name] for name in (*leading, *names)]
            leading = ()
        if "reason" in self.fields:
            yield gettext("Change log"), [self["reason"]]


class PoolForm(PoolFields):
    """The fields that an Admin may change."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_(
            "Recorded in the change log under your name. Required to disable the pool, to lower its "
            "maximum number of slots and to change the runtime settings."
        ),
    )
    optional_words = {"reason": _("required for some changes")}


class SchedulerForm(ReasonForm):
    """The scheduler document of a pool."""

    scheduler = forms.CharField(
        label=_("Actions and plugins"),
        required=False,
        max_length=MAX_CHARACTERS,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24, "class": "input mono", "spellcheck": "false"}),
        help_text=_(
            "YAML: “actions” and “plugins”, each plugin with “name” and, if it has any, “arguments”. "
            "Empty: the default scheduler."
        ),
    )
    field_order = ("scheduler", "reason")

    known_plugins = staticmethod(known_plugins)
    rejected_plugins = staticmethod(rejected_plugins)


class NewPoolForm(PoolFields):
    leading = ("name", "system", "runtime")


def _test_result(number: str, workers: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Test the connection to the worker in a row."""
    if not re.fullmatch(r"[0-9]{1,3}", number) or int(number) >= len(workers):
        return None
    return {"row": int(number), "health": check_worker(without_blanks(workers[int(number)]))}


def _model_fields(leading: tuple[str, ...], runtime: str) -> dict[str, Any]:
    fields: dict[str, Any] = forms.fields_for_model(
        Pool,
        fields=[*leading, *EDITED],
        labels=LABELS,
        help_texts=HELP,
        widgets={
            "runtime_settings": RuntimeSettingsWidget(runtime),
            **dict.fromkeys(DURATIONS, forms.TextInput),
        },
        field_classes={
            "runtime_settings": RuntimeSettingsField,
            **dict.fromkeys(DURATIONS, SecondsField),
        },
        error_messages={"runtime_settings": {"invalid": NOT_JSON}},  # type: ignore[dict-item]
    )
    fields["runtime_settings"].required = False
    if "runtime" in fields:
        choices = [(name, display_name(name)) for name in runtime_names()]
        fields["runtime"] = forms.ChoiceField(label=_("Runtime"), choices=choices, initial=runtime)
    for field in fields.values():
        if not isinstance(field.widget, forms.CheckboxInput):
            field.widget.attrs.setdefault("class", "input")
    return fields
