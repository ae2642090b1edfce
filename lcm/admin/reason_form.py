"""Form fields for the reason of a change or deletion, recorded in the change log."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, QueryDict


class AdminReasonForm(forms.Form):
    required_css_class = "required"
    reason = forms.CharField(
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 60}),
        help_text="Recorded in the change log under your name.",
    )


def with_reason_field(form: type[Any]) -> type[Any]:
    """Return the model form with a field for the reason."""
    return type(form.__name__, (form, AdminReasonForm), {})


def confirmed_reason(request: HttpRequest, *, said_yes: bool) -> AdminReasonForm:
    """Return the reason of a confirmed deletion; without one, show the confirmation page again."""
    form = AdminReasonForm(request.POST if said_yes else None)
    if said_yes and not form.is_valid():
        request.POST = QueryDict()
    return form


def reason_of(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()
