"""Review of a definition: evidence, choices, live preview and apply."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from lcm.domain.errors import InvalidInput, LcmError
from lcm.domain.lifecycle import ACTIVE
from lcm.domain.roles import Role
from lcm.models import LabletDefinition, LabletSession
from lcm.selectors.definitions import definition_with_everything
from lcm.selectors.organisation import admin_names
from lcm.web.access import htmx_of, role_required
from lcm.web.crumbs import definition_crumbs
from lcm.web.form_page import FormResult, actor_of, redirect_with_message, render_page
from lcm.web.wording import list_text
from observations.arithmetic.measures import MEASURED, SOURCES
from observations.pages.review_charts import chart_context
from observations.pages.review_summary import review_summary
from observations.pages.review_texts import blank_figures, impact_figures, options_of
from observations.selectors.evidence import (
    Evidence,
    drivers_of,
    evidence_of,
    not_counted_sessions,
    outliers_of,
)
from observations.services.assessments import has_regressed
from observations.services.outcomes import revert_target, revision_progress
from observations.services.requirement_preview import (
    KEEP,
    RequirementChoice,
    RequirementPreview,
    preview_change,
)
from observations.services.requirement_revision import apply_requirements

TEMPLATE = "observations/review.html"


def _get(pk: UUID) -> LabletDefinition:
    return get_object_or_404(definition_with_everything(), pk=pk)


def choices_from(data: Mapping[str, Any], evidence: Evidence) -> dict[str, RequirementChoice]:
    """Return the choices of the form; flagged resources that it omits default to the recommendation."""
    flags = evidence.assessment.flags
    return {
        name: RequirementChoice(
            basis=str(data.get(name) or ("recommended" if name in flags else KEEP)),
            custom=_number(_entered(data, name)),
            source=_source(data, name),
        )
        for name in MEASURED
    }


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace(",", ".")) if text else None
    except InvalidOperation:
        return None


def _evidence(definition: LabletDefinition, data: Mapping[str, Any], now: datetime) -> Evidence:
    return evidence_of(definition, now=now, sources={name: _source(data, name) for name in MEASURED})


def _source(data: Mapping[str, Any], resource: str) -> str:
    """Return the source that the form requests; empty for the default."""
    source = str(data.get(f"{resource}_source", ""))
    return source if source in SOURCES else ""


def _context(
    request: HttpRequest, definition: LabletDefinition, data: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """Return the preview of the form's choices; if one is invalid, its error and no figures."""
    evidence = _evidence(definition, data, now)
    choices = choices_from(data, evidence)
    problems: dict[str, str] = {}
    try:
        preview = preview_change(definition=definition, choices=choices, now=now, evidence=evidence)
    except InvalidInput as error:
        problems = {name: _problem_text(data, name, texts[0]) for name, texts in error.fields.items()}
        kept = {name: RequirementChoice(source=each.source) for name, each in choices.items()}
        preview = preview_change(
            definition=definition,
            choices={name: each if name in problems else choices[name] for name, each in kept.items()},
            now=now,
            evidence=evidence,
        )
    figures = blank_figures(preview, now=now) if problems else impact_figures(preview, now=now)
    without = not_counted_sessions(definition)
    return {
        "definition": definition,
        "revision": definition.revision,
        "next_number": definition.revision.number + 1,
        "preview": preview,
        "assessment": evidence.assessment,
        "not_counted": without,
        **chart_context(request, definition, preview, without, now=now),
        "figures": figures,
        "problems": problems,
        "reason": data.get("reason", ""),
        "options": options_of(preview, choices, {name: _entered(data, name) for name in MEASURED}, problems),
    }


def _entered(data: Mapping[str, Any], resource: str) -> str:
    return str(data.get(f"{resource}_custom", "")).strip()


def _problem_text(data: Mapping[str, Any], resource: str, text: str) -> str:
    """Return the error of a resource; a text that is no number is named as it was entered."""
    entered = _entered(data, resource)
    return (
        _("“%(text)s” is not a number.") % {"text": entered} if entered and _number(entered) is None else text
    )


def _whole(
    request: HttpRequest, definition: LabletDefinition, data: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    context = _context(request, definition, data, now)
    preview: RequirementPreview = context["preview"]
    evidence, revision = preview.evidence, context["revision"]
    progress = ""
    if revision.number > 1:
        sources = evidence.assessment.sources_in(evidence.epoch)
        texts = revision_progress(revision, sources).texts
        progress = list_text([text.translated(translation) for text in texts])
    return {
        **context,
        "lead": review_summary(preview),
        "views": evidence.views.values(),
        "evidence": evidence,
        "drivers": drivers_of(evidence) if evidence.digest.n else None,
        "outliers": outliers_of(evidence) if evidence.digest.n else [],
        # Only Admins see it; the template reads it twice.
        "running": cache(LabletSession.objects.filter(definition=definition, status__in=ACTIVE).count),
        "can_snooze": bool(evidence.assessment.flags) or has_regressed(definition),
        "admins": lambda: list_text(admin_names() or [_("none")]),
        "back_to": revert_target(revision),
        "progress": progress,
        "crumbs": definition_crumbs(definition, _("Review")),
    }


@require_GET
@role_required(Role.VIEWER)
def definition_review(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """The panel of the definition page, or a full page without JavaScript."""
    return show_panel(request, TEMPLATE, _whole(request, _get(pk), request.GET, timezone.now()))


@require_GET
@role_required(Role.VIEWER)
def definition_preview(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Return the parts of the panel that depend on the choices."""
    if not htmx_of(request):
        return definition_review(request, pk)
    context = _context(request, _get(pk), request.GET, timezone.now())
    return render(request, "observations/preview.html", context)


@require_POST
@role_required(Role.ADMIN)
def definition_apply(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Apply the previewed change; on refusal show the current panel and what has changed."""
    definition, now = _get(pk), timezone.now()
    evidence = _evidence(definition, request.POST, now)
    try:
        revision = apply_requirements(
            definition=definition,
            choices=choices_from(request.POST, evidence),
            token=request.POST.get("token", ""),
            reason=request.POST.get("reason", ""),
            actor=actor_of(request),
            now=now,
        )
    except LcmError as error:
        context = _whole(request, _get(pk), request.POST, timezone.now()) | _refusal(error)
        return show_panel(request, TEMPLATE, context, status=error.status)
    here = reverse("definition_detail", args=[pk])
    text = _("Revision %(number)s applied. New sessions use it immediately.") % {"number": revision.number}
    return redirect_with_message(request, FormResult(text, here))


def _refusal(error: LcmError) -> dict[str, Any]:
    """Return the texts of a rejected change that belong to no field."""
    fields = error.fields if isinstance(error, InvalidInput) else {}
    if fields and set(fields) <= {*MEASURED, "reason"}:
        return {"reason_problem": " ".join(fields.get("reason", ()))}
    return {"refusals": error.details.get("changed") or [error.message]}


def show_panel(
    request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render the full page, or the panel for htmx, which swaps in errors with status 422."""
    if htmx_of(request) and status >= 400:
        status = 422
    return render_page(request, template, context, part="panel", status=status)
