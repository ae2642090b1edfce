"""Review of a definition: evidence, choices, live preview and apply."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from lcm.domain.errors import InvalidInput, LcmError
from lcm.domain.lifecycle import ACTIVE
from lcm.domain.roles import Role
from lcm.models import LabletDefinition, LabletSession
from lcm.selectors.definitions import definition_with_everything
from lcm.web.access import role_required
from lcm.web.form_page import FormResult, actor_of, redirect_with_message
from observations.arithmetic.measures import MEASURED, SOURCES
from observations.pages.review_charts import chart_of
from observations.pages.review_summary import review_summary
from observations.pages.review_texts import answers_of, options_of, progress_text
from observations.selectors.evidence import (
    Evidence,
    dots_of,
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

DOTS, LISTED = 200, 20


def _get(pk: UUID) -> LabletDefinition:
    return get_object_or_404(definition_with_everything(), pk=pk)


def choices_from(data: Mapping[str, Any], evidence: Evidence) -> dict[str, RequirementChoice]:
    """Return the choices of the form; flagged resources that it omits default to the recommendation."""
    flags = evidence.assessment.flags
    return {
        name: RequirementChoice(
            basis=str(data.get(name) or ("recommended" if name in flags else KEEP)),
            custom=_number(str(data.get(f"{name}_custom", ""))),
            source=str(data.get(f"{name}_source", "")) if data.get(f"{name}_source") in SOURCES else "",
        )
        for name in MEASURED
    }


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text.strip().replace(",", ".")) if text.strip() else None
    except InvalidOperation:
        return None


def _evidence(definition: LabletDefinition, data: Mapping[str, Any], now: datetime) -> Evidence:
    sources = {
        name: str(data[f"{name}_source"]) for name in MEASURED if data.get(f"{name}_source") in SOURCES
    }
    return evidence_of(definition, now=now, sources=sources)


def _context(definition: LabletDefinition, data: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the preview of the form's choices; if they are invalid, a preview of no change and the error."""
    evidence = _evidence(definition, data, now)
    choices = choices_from(data, evidence)
    problem = ""
    try:
        preview = preview_change(definition=definition, choices=choices, now=now, evidence=evidence)
    except InvalidInput as error:
        problem = error.message
        kept = {name: RequirementChoice(source=each.source) for name, each in choices.items()}
        preview = preview_change(definition=definition, choices=kept, now=now, evidence=evidence)
    without = not_counted_sessions(definition)
    dots = dots_of(evidence, DOTS, without) if evidence.digest.n or without else []
    assert definition.current_revision is not None
    return {
        "definition": definition,
        "revision": definition.current_revision,
        "next_number": definition.current_revision.number + 1,
        "preview": preview,
        "assessment": evidence.assessment,
        "not_counted": without,
        "dots": dots[: -LISTED - 1 : -1],
        "charts": [chart_of(impact, dots) for impact in preview.impacts],
        "answers": answers_of(preview, now=now),
        "problem": problem,
        "reason": data.get("reason", ""),
        "options": options_of(preview, choices),
    }


def _whole(definition: LabletDefinition, data: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    context = _context(definition, data, now)
    preview: RequirementPreview = context["preview"]
    evidence, revision = preview.evidence, context["revision"]
    progress = ""
    if revision.number > 1:
        sources = evidence.assessment.sources_in(evidence.epoch)
        progress = progress_text(revision_progress(revision, sources))
    return {
        **context,
        "lead": review_summary(preview),
        "views": evidence.views.values(),
        "evidence": evidence,
        "drivers": drivers_of(evidence) if evidence.digest.n else None,
        "outliers": outliers_of(evidence) if evidence.digest.n else [],
        "running": LabletSession.objects.filter(definition=definition, status__in=ACTIVE).count(),
        "can_snooze": bool(evidence.assessment.flags) or has_regressed(definition),
        "back_to": revert_target(revision),
        "progress": progress,
        "crumbs": [
            (_("Definitions"), reverse("definition_list")),
            (str(definition), reverse("definition_detail", args=[definition.pk])),
            (_("Review"), ""),
        ],
    }


@require_GET
@role_required(Role.VIEWER)
def definition_review(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """The panel of the definition page, or a full page without JavaScript."""
    return _show(request, _whole(_get(pk), request.GET, timezone.now()))


@require_GET
@role_required(Role.VIEWER)
def definition_preview(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Return the parts of the panel that depend on the choices."""
    if not request.htmx:  # type: ignore[attr-defined]
        return definition_review(request, pk)
    return render(request, "observations/preview.html", _context(_get(pk), request.GET, timezone.now()))


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
        refusals = error.details.get("changed") or [error.message]
        context = _whole(_get(pk), request.POST, timezone.now()) | {"refusals": refusals}
        return _show(request, context, status=error.status)
    here = reverse("definition_detail", args=[pk])
    text = _("Revision %(number)s applied. New sessions use it immediately.") % {"number": revision.number}
    return redirect_with_message(request, FormResult(text, here))


def _show(request: HttpRequest, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    """Render the full page, or the panel for htmx, which swaps in errors with status 422."""
    if not request.htmx:  # type: ignore[attr-defined]
        return render(request, "observations/review.html", context, status=status)
    return render(request, "observations/review.html#panel", context, status=status if status < 400 else 422)
