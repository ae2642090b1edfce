"""Importing many CML topologies at once, in the background."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from lcm.roles import Role
from lcm.services.importing import start_import
from lcm.web.access import role_required
from lcm.web.form_pages import Done, FormPage, actor_of, form_page
from lcm.web.forms import PageForm


class FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """Several files of one input."""

    widget = FilesInput(attrs={"multiple": True})

    def clean(self, data: Any, initial: Any = None) -> Any:
        several = data if isinstance(data, list | tuple) else [data]
        return [super(FilesField, self).clean(each, initial) for each in several]


class ManyForm(PageForm):
    topologies = FilesField(label="YAML files", help_text="As CML exports them, 50 at most, 5 MB together.")


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def definition_import_many(request: HttpRequest) -> HttpResponseBase:
    def save(data: Mapping[str, Any]) -> Done:
        files = [(each.name, each.read()) for each in data["topologies"]]
        job = start_import(files=files, actor=actor_of(request), now=timezone.now())
        return Done("", reverse("job_detail", args=[job.pk]))

    home = reverse("definition_import")
    page = FormPage(
        title="Import many definitions",
        text="Each file becomes a draft with the requirements that its nodes ask for. "
        "Look at the drafts and activate those that are right.",
        form=ManyForm,
        submit="Import files",
        save=save,
        back=home,
        crumbs=[("Definitions", reverse("definition_list")), ("Import", home), ("Many", "")],
    )
    return form_page(request, page)
