"""Forms of a pool: the fields of the model, in groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms

from lcm.web.forms import ObjectField, PageForm, ReasonForm
from scheduling.capacity.runtimes.registry import runtime_names
from scheduling.models import Pool
from scheduling.pages.schedulers import known_plugins
from scheduling.pages.supply import display_name
from scheduling.placement.framework.configuration import MAX_CHARACTERS
from scheduling.placement.framework.plugin import refused_plugins

GROUPS: dict[str, tuple[str, ...]] = {
    "Pool": ("description", "enabled"),
    "Number of slots": (
        "min_slots",
        "warm_slots",
        "max_slots",
        "max_leases",
        "idle_seconds",
        "target_wait_seconds",
    ),
    "Slot capacity": ("cpu_cores", "memory_gb", "storage_gb", "gpu", "first_port", "last_port"),
    "Supply": ("spot_policy", "runtime_settings"),
    "Time limits": (
        "launch_timeout",
        "boot_timeout",
        "binding_timeout",
        "drain_timeout",
        "terminate_timeout",
    ),
}
EDITED = tuple(name for names in GROUPS.values() for name in names)
LABELS = {
    "min_slots": "Minimum slots",
    "warm_slots": "Warm slots",
    "max_slots": "Maximum slots",
    "max_leases": "Leases per slot",
    "idle_seconds": "Idle time, s",
    "target_wait_seconds": "Wait target, s",
    "cpu_cores": "CPU, cores",
    "memory_gb": "Memory, GB",
    "storage_gb": "Storage, GB",
    "gpu": "GPUs",
    "spot_policy": "Market",
    "launch_timeout": "Launch, s",
    "boot_timeout": "Boot, s",
    "binding_timeout": "Bind, s",
    "drain_timeout": "Drain, s",
    "terminate_timeout": "Terminate, s",
}
HELP = {
    "enabled": "A disabled pool accepts no new sessions and launches nothing.",
    "min_slots": "Slots kept without demand.",
    "warm_slots": "Empty, ready slots kept for the next session.",
    "max_slots": "For demand, minimum and warm slots together.",
    "max_leases": "Sessions on one slot at the same time.",
    "idle_seconds": "A slot without a session is drained after this long.",
    "target_wait_seconds": "The overview shows sessions that wait longer.",
    "first_port": "First port that sessions on a slot can use.",
    "last_port": "Last port, inclusive.",
    "runtime_settings": 'A JSON object, for example {"boot_seconds": 20}. Empty: none.',
}
NOT_JSON = 'This is not valid JSON. Enter an object such as {"boot_seconds": 20}, or leave it empty.'


class PoolFields(PageForm):
    """The fields of the model; the service validates them."""

    leading: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields = {**_model_fields(self.leading), **self.fields}

    def clean_runtime_settings(self) -> dict[str, Any]:
        settings = self.cleaned_data["runtime_settings"]
        if settings in (None, ""):
            return {}
        if not isinstance(settings, dict):
            raise forms.ValidationError(NOT_JSON)
        return settings

    def groups(self) -> Iterator[tuple[str, list[Any]]]:
        """Return the fields in the groups of the page."""
        for title, names in GROUPS.items():
            first = self.leading if title == "Pool" else ()
            yield title, [self[name] for name in (*first, *names)]
        if "reason" in self.fields:
            yield "Change log", [self["reason"]]


class PoolForm(PoolFields):
    """The fields that an Admin may change."""

    reason = forms.CharField(
        max_length=500,
        required=False,
        help_text="Recorded in the change log under your name. Required to disable the pool, to lower its "
        "maximum of slots and to change the runtime settings.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].optional_word = "required for some changes"  # type: ignore[attr-defined]


class SchedulerForm(ReasonForm):
    """The scheduler document of a pool."""

    scheduler = forms.CharField(
        label="Actions and plugins",
        required=False,
        max_length=MAX_CHARACTERS,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24, "class": "input mono", "spellcheck": "false"}),
        help_text="YAML: “actions” and “plugins”, each plugin with “name” and, if it has any, “arguments”. "
        "Empty: the default scheduler.",
    )
    field_order = ("scheduler", "reason")

    known_plugins = staticmethod(known_plugins)
    refused_plugins = staticmethod(refused_plugins)


class NewPoolForm(PoolFields):
    leading = ("name", "system", "runtime")


def _model_fields(leading: tuple[str, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = forms.fields_for_model(
        Pool,
        fields=[*leading, *EDITED],
        labels=LABELS,
        help_texts={"name": "Lowercase letters, digits and hyphens.", **HELP},
        widgets={
            "runtime_settings": forms.Textarea(
                attrs={"rows": 6, "class": "input mono", "spellcheck": "false"}
            )
        },
        field_classes={"runtime_settings": ObjectField},
        error_messages={"runtime_settings": {"invalid": NOT_JSON}},
    )
    fields["runtime_settings"].required = False
    if "runtime" in fields:
        choices = [(name, display_name(name)) for name in runtime_names()]
        fields["runtime"] = forms.ChoiceField(choices=choices, initial="simulated")
    for field in fields.values():
        if not isinstance(field.widget, forms.CheckboxInput):
            field.widget.attrs.setdefault("class", "input")
    return fields
