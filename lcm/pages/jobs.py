"""Pages of long-running jobs: progress and results."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from lcm.domain.errors import LcmError
from lcm.domain.roles import Role
from lcm.models import Job
from lcm.pages.lists import JOBS
from lcm.selectors.organisation import changes_of
from lcm.services.jobs import retry_job
from lcm.web.access import role_required
from lcm.web.form_page import FormResult, actor_of, redirect_with_message, render_page
from lcm.web.list_page import list_view

job_list = list_view(JOBS)


@require_GET
@role_required(Role.VIEWER)
def job_detail(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Return the page, or for htmx its progress, which reloads until the job has ended."""
    job = get_object_or_404(Job, pk=pk)
    context = {
        "job": job,
        "now": timezone.now(),
        "changes": changes_of(job),
        "crumbs": [(_("Jobs"), reverse("job_list")), (job.title, "")],
    }
    return render_page(request, "jobs/detail.html", context, part="progress")


@require_POST
@role_required(Role.OPERATOR)
def job_retry(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    job = get_object_or_404(Job, pk=pk)
    job_url = reverse("job_detail", args=[pk])
    try:
        retry_job(job=job, actor=actor_of(request), now=timezone.now())
    except LcmError as error:
        messages.error(request, error.message)
        return redirect_with_message(request, FormResult("", job_url))
    return redirect_with_message(request, FormResult(_("Job resumed."), job_url))
