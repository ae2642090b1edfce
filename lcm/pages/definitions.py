"""Definition pages."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from lcm.cml.topology.port_templates import port_changes, read_entry, read_lines
from lcm.domain.roles import Role, role_of
from lcm.models import DefinitionRevision, DefinitionStatus, LabletDefinition, Placement
from lcm.models.definitions import RESOURCES
from lcm.pages.bulk_actions import ACTIVATE, DEPRECATE
from lcm.pages.lists import DEFINITIONS, revisions_list
from lcm.selectors import definitions as selectors
from lcm.selectors.organisation import changes_of
from lcm.selectors.sessions import sessions
from lcm.services import definitions as services
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_page
from lcm.web.charts.topology import picture_of
from lcm.web.form_page import FormPage, FormResult, actor_of, form_page, render_page
from lcm.web.forms import PageForm, ReasonForm
from lcm.web.list_page import list_page
from lcm.web.wording import NBSP, amount_text, core_count_text


def _home(definition: LabletDefinition) -> str:
    return reverse("definition_detail", args=[definition.pk])


def _crumbs(definition: LabletDefinition, last: str) -> list[tuple[str, str]]:
    return [
        (gettext("Definitions"), reverse("definition_list")),
        (str(definition), _home(definition)),
        (last, ""),
    ]


def _get(pk: UUID) -> LabletDefinition:
    return get_object_or_404(selectors.definition_with_everything(), pk=pk)


@require_GET
@role_required(Role.VIEWER)
def definition_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, DEFINITIONS)


@require_GET
@role_required(Role.VIEWER)
def definition_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    definition, role = _get(pk), role_of(request.user)
    context = {
        "definition": definition,
        "topology": selectors.topology_text(definition, role),
        "is_redacted": not selectors.shows_configurations(role),
        "revision": definition.current_revision,
        "now": timezone.now(),
        "revisions": selectors.revisions_to_list(definition)[:20],
        "has_row_actions": _has_older(definition) and role >= Role.ADMIN,
        "sessions": sessions().filter(definition=definition).order_by("-created_at", "-pk")[:8],
        "changes": changes_of(definition),
        "picture": picture_of(definition.nodes, definition.links),
        "crumbs": [(gettext("Definitions"), reverse("definition_list")), (str(definition), "")],
    }
    return render(request, "definitions/detail.html", context)


def _has_older(definition: LabletDefinition) -> bool:
    return definition.current_revision is not None and definition.current_revision.number > 1


@require_GET
@role_required(Role.VIEWER)
def definition_revisions(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    definition = get_object_or_404(selectors.definitions(), pk=pk)
    return list_page(request, revisions_list(definition), crumbs=_crumbs(definition, gettext("Revisions")))


class DefinitionForm(PageForm):
    """Settings that an Admin may change without creating a revision."""

    description = forms.CharField(
        label=_("Description"), max_length=500, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    system = forms.CharField(
        label=_("System"), max_length=30, initial="cml", help_text=_("Kind of worker that runs the lab.")
    )
    pool = forms.CharField(
        label=_("Pool"),
        max_length=63,
        required=False,
        help_text=_("Pool for its sessions. Empty: chosen for each session."),
    )
    placement = forms.ChoiceField(label=_("Placement"), choices=Placement.choices, initial=Placement.TOGETHER)
    max_duration = forms.DurationField(
        label=_("Longest timeslot"), initial="08:00:00", help_text=_("Hours, minutes and seconds: 08:00:00.")
    )
    preemptible = forms.BooleanField(required=False, label=_("May be interrupted"))
    awaits_arrival = forms.BooleanField(
        required=False,
        label=_("Start when the user arrives"),
        help_text=_("The session starts running when the user arrives, not when the lab is ready."),
    )
    slot_labels = forms.JSONField(
        required=False,
        label=_("Slot labels"),
        initial=dict,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Labels that a slot must have, as JSON: {} for any slot."),
    )

    def clean_slot_labels(self) -> Any:
        return self.cleaned_data["slot_labels"] or {}

    def clean_max_duration(self) -> Any:
        value = self.cleaned_data["max_duration"]
        if not 60 <= value.total_seconds() <= 365 * 86_400:
            raise forms.ValidationError(gettext("Must be between 1 minute and 1 year."))
        return value


class EditForm(DefinitionForm):
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Recorded in the change log under your name."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].optional_word = gettext("required unless only the description changes")  # type: ignore[attr-defined]


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def definition_edit(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    definition = _get(pk)

    def save(data: Mapping[str, Any]) -> FormResult:
        services.update_definition(definition=definition, actor=actor_of(request), say_why=True, **data)
        return FormResult(gettext("%(definition)s saved.") % {"definition": definition}, _home(definition))

    page = FormPage(
        title=gettext("Edit %(definition)s") % {"definition": definition},
        text=gettext("Requirements are changed by a revision, the topology by importing a new version."),
        form=EditForm,
        submit=gettext("Save"),
        save=save,
        back=_home(definition),
        initial={name: getattr(definition, name) for name in services.EDITABLE_FIELDS},
        crumbs=_crumbs(definition, gettext("Edit")),
    )
    return form_page(request, page)


class RequirementsForm(PageForm):
    cpu_cores = forms.DecimalField(label=_("CPU (cores)"), min_value=0, max_digits=8, decimal_places=2)
    memory_gb = forms.DecimalField(label=_("Memory (GB)"), min_value=0, max_digits=8, decimal_places=2)
    storage_gb = forms.DecimalField(label=_("Storage (GB)"), min_value=0, max_digits=10, decimal_places=2)
    gpu = forms.DecimalField(label=_("GPUs"), min_value=0, max_digits=6, decimal_places=2, initial=0)

    def requirements(self) -> dict[str, Decimal]:
        return {name: self.cleaned_data[name] for name in RESOURCES}


class ReviseForm(ReasonForm, RequirementsForm):
    based_on = forms.IntegerField(widget=forms.HiddenInput)
    field_order = [*RESOURCES, "reason", "based_on"]


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def definition_revise(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    definition = _get(pk)
    revision = definition.current_revision
    assert revision is not None

    def save(data: Mapping[str, Any]) -> FormResult:
        made = services.revise_definition(
            definition=definition,
            requirements={name: data[name] for name in RESOURCES},
            based_on=data["based_on"],
            reason=data["reason"],
            actor=actor_of(request),
            now=timezone.now(),
        )
        return FormResult(gettext("Revision %(new)s applied.") % {"new": made.number}, _home(definition))

    page = FormPage(
        title=gettext("Revise %(definition)s") % {"definition": definition},
        text=gettext("New sessions get the new requirements. Existing sessions keep theirs."),
        form=ReviseForm,
        submit=gettext("Apply revision"),
        save=save,
        back=_home(definition),
        initial={**revision.requirements, "based_on": revision.number},
        crumbs=_crumbs(definition, gettext("Revise")),
    )
    return form_page(request, page)


class PortsForm(ReasonForm):
    port_template = forms.CharField(
        label=_("Ports"),
        required=False,
        max_length=200_000,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
        help_text=_(
            "One port per line: the label of a node, a space and the port tag as in CML. "
            "Examples: “r1 serial:5041”, “r1 ssh:5022:22”, “r1 pat:udp:2161:161”."
        ),
    )
    based_on = forms.IntegerField(widget=forms.HiddenInput)
    field_order = ["port_template", "reason", "based_on"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["port_template"].optional_word = gettext("empty: no ports")  # type: ignore[attr-defined]

    def clean_port_template(self) -> list[dict[str, str]]:
        return read_lines(self.cleaned_data["port_template"])


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def definition_ports(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Edit the port template by hand."""
    definition = _get(pk)
    revision = definition.current_revision
    assert revision is not None

    def save(data: Mapping[str, Any]) -> FormResult:
        made = services.revise_definition(
            definition=definition, requirements={}, **data, actor=actor_of(request), now=timezone.now()
        )
        return FormResult(gettext("Revision %(new)s applied.") % {"new": made.number}, _home(definition))

    page = FormPage(
        title=gettext("Edit ports of %(definition)s") % {"definition": definition},
        text=gettext("New sessions get ports from the new template. Existing sessions keep their ports."),
        form=PortsForm,
        submit=gettext("Apply revision"),
        save=save,
        back=_home(definition),
        initial={
            "port_template": "\n".join(str(read_entry(entry)) for entry in revision.port_template),
            "based_on": revision.number,
        },
        crumbs=_crumbs(definition, gettext("Edit ports")),
    )
    return form_page(request, page)


class RevertForm(ReasonForm):
    based_on = forms.IntegerField(widget=forms.HiddenInput)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def definition_revert(request: HttpRequest, pk: UUID, number: int) -> HttpResponseBase:
    definition = _get(pk)
    target, current = get_object_or_404(definition.revisions, number=number), definition.current_revision
    assert current is not None
    if target.pk == current.pk:
        return _nothing_to_revert(request, definition, target)

    def save(data: Mapping[str, Any]) -> FormResult:
        made = services.revert_definition(
            definition=definition, number=number, **data, actor=actor_of(request), now=timezone.now()
        )
        return FormResult(
            gettext("Reverted to revision %(number)s as revision %(new)s.")
            % {"number": number, "new": made.number},
            _home(definition),
        )

    page = FormPage(
        title=gettext("Revert to revision %(number)s?") % {"number": number},
        text=_revert_text(definition, current, target),
        form=RevertForm,
        submit=gettext("Revert to revision %(number)s") % {"number": number},
        save=save,
        back=_home(definition),
        initial={"based_on": current.number},
        crumbs=_crumbs(definition, gettext("Revert")),
    )
    return form_page(request, page)


def _nothing_to_revert(
    request: HttpRequest, definition: LabletDefinition, revision: DefinitionRevision
) -> HttpResponseBase:
    """Return why nothing can be reverted, shown before a reason is requested, as for ineligible rows."""
    context = {
        "title": gettext("Revision %(revision)s is current") % {"revision": revision.number},
        "ineligible_note": gettext("%(definition)s already requires %(amounts)s.")
        % {"definition": definition, "amounts": _amounts(revision)},
        "back": _home(definition),
        "crumbs": _crumbs(definition, gettext("Revert")),
    }
    return render_page(request, "bulk.html", context, status=200 if request.method == "GET" else 422)


def _revert_text(
    definition: LabletDefinition, current: DefinitionRevision, target: DefinitionRevision
) -> str:
    text = gettext(
        "%(definition)s requires %(current)s now. Revision %(number)s requires %(target)s again."
    ) % {
        "definition": definition,
        "current": _amounts(current),
        "number": current.number + 1,
        "target": _amounts(target),
    }
    changes = port_changes(current.port_template, target.port_template)
    ports = gettext("Ports: %(changes)s.") % {"changes": changes.short}
    return f"{text} {ports}" if changes else text


def _amounts(revision: DefinitionRevision) -> str:
    memory, storage = (f"{amount_text(each)}{NBSP}GB" for each in (revision.memory_gb, revision.storage_gb))
    return gettext("%(cores)s, %(memory)s memory and %(storage)s storage") % {
        "cores": core_count_text(revision.cpu_cores),
        "memory": memory,
        "storage": storage,
    }


class StatusForm(PageForm):
    status = forms.ChoiceField(label=_("Status"), choices=DefinitionStatus.choices)
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_("Recorded in the change log under your name. Required to deprecate the definition."),
    )


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def definition_status(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    definition = _get(pk)

    def save(data: Mapping[str, Any]) -> FormResult:
        status = DefinitionStatus(data["status"])
        services.set_definition_status(
            definition=definition, status=status, reason=data["reason"], actor=actor_of(request)
        )
        return FormResult(
            gettext("Status of %(definition)s changed to %(status)s.")
            % {"definition": definition, "status": status.label},
            _home(definition),
        )

    page = FormPage(
        title=gettext("Change the status of %(definition)s") % {"definition": definition},
        text=gettext(
            "Sessions can only be requested of active definitions. Existing sessions are not affected."
        ),
        form=StatusForm,
        submit=gettext("Change status"),
        save=save,
        back=_home(definition),
        initial={"status": definition.status},
        crumbs=_crumbs(definition, gettext("Status")),
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def definition_delete(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    definition = _get(pk)

    def save(data: Mapping[str, Any]) -> FormResult:
        services.delete_definition(definition=definition, reason=data["reason"], actor=actor_of(request))
        return FormResult(
            gettext("%(definition)s deleted.") % {"definition": definition}, reverse("definition_list")
        )

    page = FormPage(
        title=gettext("Delete %(definition)s?") % {"definition": definition},
        text=gettext(
            "Deletes the definition and its revisions. A definition with sessions can only be deprecated."
        ),
        form=ReasonForm,
        submit=gettext("Delete definition"),
        danger=True,
        save=save,
        back=_home(definition),
        crumbs=_crumbs(definition, gettext("Delete")),
    )
    return form_page(request, page)


@require_POST
@role_required(Role.ADMIN)
def definition_bulk_activate(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, ACTIVATE.name)


@require_POST
@role_required(Role.ADMIN)
def definition_bulk_deprecate(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, DEPRECATE.name)
