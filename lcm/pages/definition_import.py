"""Import of a CML topology: paste or upload, check, save."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from lcm.cml.topology.parser import Topology
from lcm.domain.errors import InvalidInput
from lcm.domain.resources import RESOURCE_NAMES
from lcm.domain.roles import Role
from lcm.models import DefinitionStatus
from lcm.models.people import slug_name
from lcm.pages.definitions import DefinitionForm, RequirementsForm
from lcm.services import definitions as services
from lcm.services.import_job import start_import, suggested_name
from lcm.web.access import role_required
from lcm.web.charts.topology import picture_of
from lcm.web.form_page import (
    FormPage,
    FormResult,
    actor_of,
    form_view,
    redirect_with_message,
    save_form,
)
from lcm.web.forms import EitherFile, EitherText, PageForm, add_errors


class FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """Several files in one input."""

    widget = FilesInput(attrs={"multiple": True})

    def clean(self, data: object, initial: object = None) -> Any:
        several = data if isinstance(data, list | tuple) else [data]
        return [super(FilesField, self).clean(each, initial) for each in several]


class BulkImportForm(PageForm):
    topologies = FilesField(
        label=_("YAML files"), help_text=_("Exported from CML; up to 50 files, 5 MB in total.")
    )


@form_view(Role.ADMIN)
def definition_bulk_import(request: HttpRequest) -> FormPage:
    return FormPage(
        title=gettext("Import several definitions"),
        text=gettext(
            "Each file becomes a draft with the requirements of its nodes. "
            "Check the drafts, then activate them."
        ),
        form=BulkImportForm,
        submit=gettext("Import files"),
        save=lambda data: start_import(
            files=[(each.name, each.read()) for each in data["topologies"]],
            actor=actor_of(request),
            now=timezone.now(),
        ),
        next=lambda job: reverse("job_detail", args=[job.pk]),
        crumbs=[
            (gettext("Definitions"), reverse("definition_list")),
            (gettext("Import"), reverse("definition_import")),
            (gettext("Bulk import"), ""),
        ],
    )


class TopologyForm(PageForm):
    """First step: the topology as text or file."""

    use_required_attribute = False
    file = EitherFile(label=_("YAML file"), help_text=_("Exported from CML, up to 2 MB."))
    topology = EitherText(
        strip=False,
        label=_("Or paste the topology"),
        widget=forms.Textarea(attrs={"rows": 14, "class": "input mono", "spellcheck": "false"}),
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("file"):
            data["text"] = data["file"].read()
        elif (data.get("topology") or "").strip():
            data["text"] = data["topology"]
        elif not self.errors:
            raise forms.ValidationError(gettext("Choose a file or paste the topology."))
        return data


class ReviewForm(RequirementsForm, DefinitionForm):
    """Second step: the imported values, to be named and corrected."""

    name = forms.CharField(
        label=_("Name"),
        max_length=63,
        validators=[slug_name],
        help_text=_("Lowercase letters, digits and hyphens."),
    )
    version = forms.CharField(label=_("Version"), max_length=20, initial="1.0")
    status = forms.ChoiceField(
        label=_("Status"),
        choices=[(each.value, each.label) for each in (DefinitionStatus.DRAFT, DefinitionStatus.ACTIVE)],
        initial=DefinitionStatus.ACTIVE,
        help_text=_("Sessions can only be requested of active definitions."),
    )
    topology = forms.CharField(widget=forms.HiddenInput, strip=False)
    field_order = ["name", "version", "status", "description", *RESOURCE_NAMES, *services.EDITABLE_FIELDS[1:]]


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def definition_import(request: HttpRequest) -> HttpResponseBase:
    """Show the empty form or the review, or save the definition."""
    if request.method == "GET":
        return _show(request, TopologyForm())
    if "name" in request.POST:
        return _save(request)
    form = TopologyForm(request.POST, request.FILES)
    if not form.is_valid():
        return _show(request, form, status=422)
    text = form.cleaned_data["text"]
    try:
        topology = services.read_topology(text=text)
    except InvalidInput as error:
        _show_topology_errors(form, error)
        return _show(request, form, status=422)
    decoded = text.decode() if isinstance(text, bytes) else text
    review = ReviewForm(initial=_suggested(topology) | {"topology": decoded})
    return _show(request, review, topology)


def _save(request: HttpRequest) -> HttpResponseBase:
    form = ReviewForm(request.POST)
    try:
        topology = services.read_topology(text=request.POST.get("topology", ""))
    except InvalidInput as error:
        first = TopologyForm(request.POST)
        first.is_valid()
        _show_topology_errors(first, error)
        return _show(request, first, status=422)

    def save(data: Any) -> FormResult:
        plain = {name: value for name, value in data.items() if name not in RESOURCE_NAMES}
        definition = services.import_definition(
            **plain, requirements=form.requirements(), actor=actor_of(request), now=timezone.now()
        )
        return FormResult(
            gettext("%(definition)s imported.") % {"definition": definition},
            reverse("definition_detail", args=[definition.pk]),
        )

    done = save_form(form, save)
    return redirect_with_message(request, done) if done else _show(request, form, topology, status=422)


def _suggested(topology: Topology) -> dict[str, Any]:
    amounts = topology.requirements.as_dict()
    return {"name": suggested_name(topology), "description": topology.description[:500], **amounts}


def _show_topology_errors(form: PageForm, error: InvalidInput) -> None:
    """Add the location of each problem in the YAML to the topology field."""
    texts = [
        f"{path.removeprefix('topology').removeprefix('.')}: {text}".removeprefix(": ")
        for path, found in error.fields.items()
        for text in found
    ]
    add_errors(form, InvalidInput({"topology": texts}))


def _show(
    request: HttpRequest, form: PageForm, topology: Topology | None = None, *, status: int = 200
) -> HttpResponseBase:
    context = {
        "form": form,
        "topology": topology,
        "picture": picture_of(*_parts(topology)) if topology else None,
        "crumbs": [(gettext("Definitions"), reverse("definition_list")), (gettext("Import"), "")],
    }
    return render(request, "definitions/import.html", context, status=status)


def _parts(topology: Topology) -> tuple[list[Any], list[Any]]:
    return [node.to_dict() for node in topology.nodes], [link.to_dict() for link in topology.links]
