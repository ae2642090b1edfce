"""Port review of a definition: compare template and observed ports, and apply selected changes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from lcm.cml.topology.port_templates import read_entry, read_lines
from lcm.domain.errors import LcmError
from lcm.domain.roles import Role
from lcm.models import LabletDefinition
from lcm.selectors.definitions import definition_with_everything
from lcm.selectors.organisation import admin_names
from lcm.web.access import role_required
from lcm.web.crumbs import definition_crumbs
from lcm.web.form_page import FormResult, actor_of, redirect_with_message
from lcm.web.wording import list_text
from observations.pages.review import show_panel
from observations.selectors.port_review import port_review_of
from observations.services.port_template_revision import apply_ports


@require_GET
@role_required(Role.VIEWER)
def definition_port_review(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """The panel of the definition page, or a full page without JavaScript."""
    return _show(request, _get(pk))


@require_POST
@role_required(Role.ADMIN)
def definition_apply_ports(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Apply the selected differences as a revision; an error keeps the selection and the reason."""
    definition, reason = _get(pk), request.POST.get("reason", "")
    added, removed = request.POST.getlist("add"), request.POST.getlist("remove")
    based_on = request.POST.get("based_on", "")
    template = definition.revision.port_template
    kept = [line for entry in template if (line := str(read_entry(entry))) not in removed]
    try:
        revision = apply_ports(
            definition=definition,
            port_template=read_lines("\n".join([*kept, *added])),
            based_on=int(based_on[:9]) if based_on.isdecimal() else 0,
            reason=reason,
            actor=actor_of(request),
            now=timezone.now(),
        )
    except LcmError as error:
        shown = {"refusal": error.message, "chosen": {*added, *removed}, "reason": reason}
        return _show(request, _get(pk), **shown, status=error.status)
    here = reverse("definition_detail", args=[pk])
    text = _("Revision %(number)s applied. New sessions use it immediately.") % {"number": revision.number}
    return redirect_with_message(request, FormResult(text, here))


def _get(pk: UUID) -> LabletDefinition:
    return get_object_or_404(definition_with_everything(), pk=pk)


def _show(
    request: HttpRequest, definition: LabletDefinition, *, status: int = 200, **more: Any
) -> HttpResponse:
    review = port_review_of(definition)
    context = {
        "definition": definition,
        "review": review,
        "next_number": review.revision.number + 1,
        "chosen": {line.line for line in review.lines if line.suggested},
        "admins": lambda: list_text(admin_names() or [_("none")]),
        "crumbs": definition_crumbs(definition, _("Port review")),
    } | more
    return show_panel(request, "observations/port_review.html", context, status=status)
