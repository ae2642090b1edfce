"""Forms of a pool: the fields of the model, in groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from lcm.web.forms import ObjectField, PageForm, ReasonForm
from scheduling.capacity.runtimes.registry import runtime_names
from scheduling.models import Pool
from scheduling.pages.schedulers import known_plugins
from scheduling.pages.supply import display_name
from scheduling.placement.framework.configuration import MAX_CHARACTERS
from scheduling.placement.framework.plugin import refused_plugins

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
    (_("Slot capacity"), ("cpu_cores", "memory_gb", "storage_gb", "gpu", "first_port", "last_port")),
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
LABELS: dict[str, Any] = {
    "name": _("Name"),
    "system": _("System"),
    "description": _("Description"),
    "enabled": _("Enabled"),
    "min_slots": _("Minimum slots"),
    "warm_slots": _("Warm slots"),
    "max_slots": _("Maximum slots"),
    "max_leases": _("Leases per slot"),
    "idle_seconds": _("Idle time, s"),
    "target_wait_seconds": _("Wait target, s"),
    "cpu_cores": _("CPU, cores"),
    "memory_gb": _("Memory, GB"),
    "storage_gb": _("Storage, GB"),
    "gpu": _("GPUs"),
    "first_port": _("First port"),
    "last_port": _("Last port"),
    "spot_policy": _("Market"),
    "runtime_settings": _("Runtime settings"),
    "launch_timeout": _("Launch, s"),
    "boot_timeout": _("Boot, s"),
    "binding_timeout": _("Bind, s"),
    "drain_timeout": _("Drain, s"),
    "terminate_timeout": _("Terminate, s"),
}
HELP: dict[str, Any] = {
    "name": _("Lowercase letters, digits and hyphens."),
    "system": _("System of its workers."),
    "enabled": _("A disabled pool accepts no new sessions and launches nothing."),
    "min_slots": _("Slots kept without demand."),
    "warm_slots": _("Empty, ready slots kept for the next session."),
    "max_slots": _("For demand, minimum and warm slots together."),
    "max_leases": _("Sessions on one slot at the same time."),
    "idle_seconds": _("A slot without a session is drained after this long."),
    "target_wait_seconds": _("The overview shows sessions that wait longer."),
    "first_port": _("First port that sessions on a slot can use."),
    "last_port": _("Last port, inclusive."),
    "runtime_settings": _('A JSON object, for example {"boot_seconds": 20}. Empty: none.'),
}
NOT_JSON = _('This is not valid JSON. Enter an object such as {"boot_seconds": 20}, or leave it empty.')


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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].optional_word = _("required for some changes")  # type: ignore[attr-defined]


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
    refused_plugins = staticmethod(refused_plugins)


class NewPoolForm(PoolFields):
    leading = ("name", "system", "runtime")


def _model_fields(leading: tuple[str, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = forms.fields_for_model(
        Pool,
        fields=[*leading, *EDITED],
        labels=LABELS,
        help_texts=HELP,
        widgets={
            "runtime_settings": forms.Textarea(
                attrs={"rows": 6, "class": "input mono", "spellcheck": "false"}
            )
        },
        field_classes={"runtime_settings": ObjectField},
        error_messages={"runtime_settings": {"invalid": NOT_JSON}},  # type: ignore[dict-item]
    )
    fields["runtime_settings"].required = False
    if "runtime" in fields:
        choices = [(name, display_name(name)) for name in runtime_names()]
        fields["runtime"] = forms.ChoiceField(label=_("Runtime"), choices=choices, initial="simulated")
    for field in fields.values():
        if not isinstance(field.widget, forms.CheckboxInput):
            field.widget.attrs.setdefault("class", "input")
    return fields
