"""Jobs: long-running work that people start and follow."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from lcm.models.base import IdModel
from lcm.models.people import User


class JobState(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


UNFINISHED = (JobState.QUEUED, JobState.RUNNING)
# Labels of a completed job that rejected all or some of its items.
NOT_ALL_DONE = {"rejected": _("Failed"), "partial": _("Partly done")}


class Job(IdModel):
    """Long-running work in steps, with its progress and result. Removed after JOB_DAYS."""

    kind = models.CharField(max_length=63)
    title = models.CharField(max_length=200)
    arguments = models.JSONField(default=dict, blank=True)
    cursor = models.JSONField(default=dict, blank=True, help_text="Where the next step begins.")
    state = models.CharField(max_length=7, choices=JobState, default=JobState.QUEUED)
    actor = models.CharField(max_length=150)
    user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="jobs")
    created_at = models.DateTimeField(default=timezone.now)
    last_progress_at = models.DateTimeField(default=timezone.now, help_text="Time of the last progress.")
    finished_at = models.DateTimeField(null=True, blank=True)
    attempt = models.PositiveSmallIntegerField(default=0, help_text="How often a worker claimed the job.")
    total = models.PositiveIntegerField(default=0, help_text="Number of items; 0 if unknown.")
    done = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)
    result = models.CharField(max_length=500, blank=True)
    notes = models.JSONField(default=list, blank=True, help_text="Reasons for the first rejected items.")
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(name="job_state_known", condition=Q(state__in=JobState.values)),
            models.CheckConstraint(
                name="job_finished_in_the_end",
                condition=(Q(finished_at=None) | ~Q(state__in=UNFINISHED))
                & (Q(finished_at__isnull=False) | ~Q(state__in=(JobState.DONE, JobState.FAILED))),
            ),
        ]
        indexes = [
            models.Index(fields=["created_at", "id"], name="job_newest"),
            models.Index(
                fields=["last_progress_at"], condition=Q(state__in=UNFINISHED), name="job_unfinished"
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_finished(self) -> bool:
        return self.state not in UNFINISHED

    @property
    def outcome(self) -> str:
        """Return the state, or `partial` or `rejected` if a completed job rejected some or all items."""
        if self.state != JobState.DONE or not self.rejected:
            return self.state
        return "partial" if self.done else "rejected"

    @property
    def outcome_label(self) -> str:
        return str(NOT_ALL_DONE.get(self.outcome) or self.get_state_display())

    @property
    def worked_on(self) -> int:
        return self.done + self.rejected

    @property
    def percent(self) -> int | None:
        """Return the progress in percent; None if the total is unknown."""
        if self.state == JobState.DONE:
            return 100
        return min(self.worked_on * 100 // self.total, 100) if self.total else None
