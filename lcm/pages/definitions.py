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
from django.views.decorators.http import require_GET

from lcm.cml.topology.port_templates import port_changes, read_entry, read_lines
from lcm.domain.errors import InvalidInput
from lcm.domain.resources import RESOURCE_NAMES, RESOURCES
from lcm.domain.roles import Role, role_of
from lcm.extensions import Extension
from lcm.models import DefinitionRevision, DefinitionStatus, LabletDefinition, Placement
from lcm.pages.bulk_actions import ACTIVATE, DEPRECATE
from lcm.pages.lists import DEFINITIONS, REVISION_COLUMNS, revisions_list
from lcm.selectors import definitions as selectors
from lcm.selectors.organisation import changes_of
from lcm.selectors.sessions import sessions
from lcm.services import definitions as services
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_view
from lcm.web.charts.topology import picture_of
from lcm.web.crumbs import definition_crumbs
from lcm.web.durations import DurationTextField
from lcm.web.form_page import FormPage, actor_of, form_view, render_page, service_call
from lcm.web.forms import PageForm, ReasonForm
from lcm.web.label_fields import LabelsField
from lcm.web.list_page import list_page, list_view
from lcm.web.resources import amount_field, shown_amounts
from lcm.web.wording import list_text

# Revisions and sessions on the page of a definition; each has a list of its own.
ROWS_SHOWN = 5


def _home(definition: LabletDefinition) -> str:
    return reverse("definition_detail", args=[definition.pk])


def _get(pk: UUID) -> LabletDefinition:
    return get_object_or_404(selectors.definition_with_everything(), pk=pk)


definition_list = list_view(DEFINITIONS)


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
        "revision_columns": REVISION_COLUMNS,
        "revisions": selectors.revisions_to_list(definition)[:ROWS_SHOWN],
        "has_row_actions": _has_older(definition) and role >= Role.ADMIN,
        "sessions": sessions().filter(definition=definition).order_by("-created_at", "-pk")[:ROWS_SHOWN],
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
    return list_page(
        request, revisions_list(definition), crumbs=definition_crumbs(definition, gettext("Revisions"))
    )


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
    max_duration = DurationTextField(
        label=_("Longest timeslot"), initial="8 h", help_text=_("With units: 8 h, 1 h 30 min, 2 d.")
    )
    preemptible = forms.BooleanField(required=False, label=_("May be interrupted"))
    awaits_arrival = forms.BooleanField(
        required=False,
        label=_("Start when the user arrives"),
        help_text=_("The session starts running when the user arrives, not when the lab is ready."),
    )
    slot_labels = LabelsField(
        required=False,
        label=_("Slot labels"),
        initial=dict,
        help_text=_("Labels that a slot must have. None: any slot."),
    )

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
    optional_words = {"reason": _("required unless only the description changes")}


@form_view(Role.ADMIN)
def definition_edit(request: HttpRequest, pk: UUID) -> FormPage:
    definition = _get(pk)
    return FormPage(
        title=gettext("Edit %(definition)s") % {"definition": definition},
        text=gettext("Requirements are changed by a revision, the topology by importing a new version."),
        form=EditForm,
        submit=gettext("Save"),
        save=lambda data: services.update_definition(
            definition=definition, actor=actor_of(request), needs_reason=True, **data
        ),
        done=gettext("%(definition)s saved.") % {"definition": definition},
        initial={name: getattr(definition, name) for name in services.EDITABLE_FIELDS},
        crumbs=definition_crumbs(definition, gettext("Edit")),
    )


class RequirementsForm(PageForm):
    def __init__(self, *args: object, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for each in RESOURCES:
            self.fields[each.name] = amount_field(
                each, each.label_with_brackets, initial=None if each.listed else 0
            )
        self.order_fields(self.field_order)

    def requirements(self) -> dict[str, Decimal]:
        return {name: self.cleaned_data[name] for name in RESOURCE_NAMES}


class ReviseForm(ReasonForm, RequirementsForm):
    based_on = forms.IntegerField(widget=forms.HiddenInput)
    # Shown with the warning only.
    confirmed = forms.BooleanField(required=False, label=_("Apply although no slot can hold a session"))
    field_order = [*RESOURCE_NAMES, "reason", "confirmed", "based_on"]


@form_view(Role.ADMIN)
def definition_revise(request: HttpRequest, pk: UUID) -> FormPage:
    definition = _get(pk)
    revision = definition.current_revision
    assert revision is not None

    def save(data: Mapping[str, Any]) -> DefinitionRevision:
        requirements = {name: data[name] for name in RESOURCE_NAMES}
        warnings = [warn(definition, requirements) for warn in Extension.installed().requirement_warnings]
        if any(warnings) and not data["confirmed"]:
            raise InvalidInput({"confirmed": " ".join(filter(None, warnings))})
        return services.revise_definition(
            definition=definition,
            requirements=requirements,
            based_on=data["based_on"],
            reason=data["reason"],
            actor=actor_of(request),
            now=timezone.now(),
        )

    return FormPage(
        title=gettext("Revise %(definition)s") % {"definition": definition},
        text=gettext("New sessions get the new requirements. Existing sessions keep theirs."),
        form=ReviseForm,
        submit=gettext("Apply revision"),
        save=save,
        done=lambda revised: gettext("Revision %(new)s applied.") % {"new": revised.number},
        initial={**revision.requirements, "based_on": revision.number},
        crumbs=definition_crumbs(definition, gettext("Revise")),
    )


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
    optional_words = {"port_template": _("empty: no ports")}

    def clean_port_template(self) -> list[dict[str, str]]:
        return read_lines(self.cleaned_data["port_template"])


@form_view(Role.ADMIN)
def definition_ports(request: HttpRequest, pk: UUID) -> FormPage:
    """Edit the port template by hand."""
    definition = _get(pk)
    revision = definition.current_revision
    assert revision is not None
    return FormPage(
        title=gettext("Edit ports of %(definition)s") % {"definition": definition},
        text=gettext("New sessions get ports from the new template. Existing sessions keep their ports."),
        form=PortsForm,
        submit=gettext("Apply revision"),
        save=service_call(request, services.revise_definition, definition=definition, requirements={}),
        done=lambda revised: gettext("Revision %(new)s applied.") % {"new": revised.number},
        initial={
            "port_template": "\n".join(str(read_entry(entry)) for entry in revision.port_template),
            "based_on": revision.number,
        },
        crumbs=definition_crumbs(definition, gettext("Edit ports")),
    )


class RevertForm(ReasonForm):
    based_on = forms.IntegerField(widget=forms.HiddenInput)


@form_view(Role.ADMIN)
def definition_revert(request: HttpRequest, pk: UUID, number: int) -> FormPage | HttpResponseBase:
    definition = _get(pk)
    target, current = get_object_or_404(definition.revisions, number=number), definition.current_revision
    assert current is not None
    if target.pk == current.pk:
        return _nothing_to_revert(request, definition, target)
    return FormPage(
        title=gettext("Revert to revision %(number)s?") % {"number": number},
        text=_revert_text(definition, current, target),
        form=RevertForm,
        submit=gettext("Revert to revision %(number)s") % {"number": number},
        save=service_call(request, services.revert_definition, definition=definition, number=number),
        done=lambda revised: (
            gettext("Reverted to revision %(number)s as revision %(new)s.")
            % {"number": number, "new": revised.number}
        ),
        next=lambda revised: _page_after_revert(revised.definition),
        initial={"based_on": current.number},
        crumbs=definition_crumbs(definition, gettext("Revert")),
    )


def _page_after_revert(definition: LabletDefinition) -> str:
    offered = (find(definition) for find in Extension.installed().after_revert)
    return next(filter(None, offered), _home(definition))


def _nothing_to_revert(
    request: HttpRequest, definition: LabletDefinition, revision: DefinitionRevision
) -> HttpResponseBase:
    """Explain why nothing can be reverted, without a form."""
    context = {
        "title": gettext("Revision %(revision)s is current") % {"revision": revision.number},
        "ineligible_note": gettext("%(definition)s already requires %(amounts)s.")
        % {"definition": definition, "amounts": _amounts(revision)},
        "back": _home(definition),
        "crumbs": definition_crumbs(definition, gettext("Revert")),
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
    return list_text([each.named_text for each in shown_amounts(revision)])


class StatusForm(PageForm):
    status = forms.TypedChoiceField(
        label=_("Status"), choices=DefinitionStatus.choices, coerce=DefinitionStatus
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_("Recorded in the change log under your name. Required to deprecate the definition."),
    )


@form_view(Role.ADMIN)
def definition_status(request: HttpRequest, pk: UUID) -> FormPage:
    definition = _get(pk)
    return FormPage(
        title=gettext("Change the status of %(definition)s") % {"definition": definition},
        text=gettext(
            "Sessions can only be requested of active definitions. Existing sessions are not affected."
        ),
        form=StatusForm,
        submit=gettext("Change status"),
        save=lambda data: services.set_definition_status(
            definition=definition, **data, actor=actor_of(request)
        ),
        done=lambda changed: (
            gettext("Status of %(definition)s changed to %(status)s.")
            % {"definition": definition, "status": changed.get_status_display()}
        ),
        initial={"status": definition.status},
        crumbs=definition_crumbs(definition, gettext("Status")),
    )


@form_view(Role.ADMIN)
def definition_delete(request: HttpRequest, pk: UUID) -> FormPage:
    definition = _get(pk)
    return FormPage(
        title=gettext("Delete %(definition)s?") % {"definition": definition},
        text=gettext(
            "Deletes the definition and its revisions. A definition with sessions can only be deprecated."
        ),
        submit=gettext("Delete definition"),
        danger=True,
        save=lambda data: services.delete_definition(definition=definition, **data, actor=actor_of(request)),
        done=gettext("%(definition)s deleted.") % {"definition": definition},
        next=reverse("definition_list"),
        crumbs=definition_crumbs(definition, gettext("Delete")),
    )


definition_bulk_activate = bulk_view(ACTIVATE, Role.ADMIN)
definition_bulk_deprecate = bulk_view(DEPRECATE, Role.ADMIN)
