"""Lablet sessions, their transitions and kernels."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from lcm.cml.topology.limits import MAX_NODE_NAME
from lcm.domain.lifecycle import ACTIVE, FINAL, SessionStatus
from lcm.models.base import IdModel
from lcm.models.definitions import DefinitionRevision, LabletDefinition
from lcm.models.people import Project, User
from lcm.models.resources import NOT_NEGATIVE, ResourceColumns, amount_column

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

STATUS_LABELS: dict[SessionStatus, StrOrPromise] = {
    SessionStatus.PENDING: _("Pending"),
    SessionStatus.SCHEDULED: _("Scheduled"),
    SessionStatus.INSTANTIATING: _("Instantiating"),
    SessionStatus.READY: _("Ready"),
    SessionStatus.RUNNING: _("Running"),
    SessionStatus.COLLECTING: _("Collecting"),
    SessionStatus.STOPPING: _("Stopping"),
    SessionStatus.TERMINATED: _("Terminated"),
    SessionStatus.CANCELLED: _("Cancelled"),
    SessionStatus.EXPIRED: _("Expired"),
    SessionStatus.FAILED: _("Failed"),
}
STATUS_CHOICES = [(status.value, STATUS_LABELS[status]) for status in SessionStatus]


class Priority(models.IntegerChoices):
    LOW = 10, _("Low")
    NORMAL = 50, _("Normal")
    HIGH = 90, _("High")


class LabletSession(IdModel):
    """A lab of one person for a timeslot."""

    # Foreign keys with db_index=False are the first column of a composite index below.
    definition = models.ForeignKey(
        LabletDefinition, on_delete=models.PROTECT, related_name="sessions", db_index=False
    )
    revision = models.ForeignKey(DefinitionRevision, on_delete=models.PROTECT, related_name="sessions")
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="sessions", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="sessions", db_index=False)
    priority = models.PositiveSmallIntegerField(choices=Priority, default=Priority.NORMAL)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    status = models.CharField(max_length=13, choices=STATUS_CHOICES, default=SessionStatus.PENDING)
    status_since = models.DateTimeField()
    attempt = models.PositiveSmallIntegerField(default=1)
    pool = models.CharField(
        max_length=63, blank=True, help_text="The pool in which the session waits or runs."
    )
    arrived_at = models.DateTimeField(null=True, blank=True, help_text="When the user arrived.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    announced_end = models.DateTimeField(
        null=True, editable=False, help_text="The end of the timeslot that LCM announced as soon."
    )
    # Copies for the session list and its filters; the observations app owns the observations.
    observation_count = models.PositiveIntegerField(default=0, editable=False)
    observed_at = models.DateTimeField(null=True, blank=True, editable=False)
    port_drift_detected = models.BooleanField(
        default=False, editable=False, help_text="An observation showed ports that differ from the plan."
    )
    port_drift_open = models.BooleanField(
        default=False,
        editable=False,
        help_text="The newest observation of the ports differs from the plan, and the session has not ended.",
    )

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("session")
        constraints = [
            models.CheckConstraint(
                name="session_ends_after_start",
                condition=Q(ends_at__gt=F("starts_at")),
                violation_error_message=_("The timeslot must end after it starts."),
            ),
            models.CheckConstraint(
                name="session_priority_in_range", condition=Q(priority__in=Priority.values)
            ),
            models.CheckConstraint(
                name="session_status_known",
                condition=Q(status__in=[status.value for status in SessionStatus]),
            ),
            models.CheckConstraint(name="session_attempt_positive", condition=Q(attempt__gte=1)),
        ]
        # All ascending: every database can scan an index backwards, but not every database supports row
        # comparisons on a descending index.
        indexes = [
            models.Index(fields=["created_at", "id"], name="session_newest"),
            models.Index(fields=["starts_at", "id"], name="session_by_start"),
            models.Index(fields=["ends_at", "id"], name="session_by_end"),
            models.Index(fields=["status", "id"], name="session_by_status"),
            models.Index(fields=["priority", "id"], name="session_by_priority"),
            models.Index(fields=["status", "created_at", "id"], name="session_status_newest"),
            models.Index(fields=["definition", "created_at", "id"], name="session_definition_newest"),
            models.Index(fields=["owner", "created_at", "id"], name="session_owner_newest"),
            models.Index(fields=["project", "created_at", "id"], name="session_project_newest"),
            models.Index(fields=["pool", "created_at", "id"], name="session_pool_newest"),
            models.Index(fields=["status_since"], condition=Q(status__in=ACTIVE), name="session_active"),
            models.Index(
                fields=["created_at", "id"], condition=Q(port_drift_detected=True), name="session_drifting"
            ),
            models.Index(
                fields=["created_at", "id"], condition=Q(port_drift_open=True), name="session_drift_open"
            ),
        ]

    def __str__(self) -> str:
        return f"session {self.short_id}"

    @property
    def duration(self) -> timedelta:
        return self.ends_at - self.starts_at

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def latest_end(self) -> datetime:
        """Return the latest end that the definition allows."""
        return self.starts_at + self.definition.max_duration


class SessionTransition(IdModel):
    """A status transition of a session. Immutable."""

    session = models.ForeignKey(
        LabletSession, on_delete=models.CASCADE, related_name="transitions", db_index=False
    )
    from_status = models.CharField(max_length=13, choices=STATUS_CHOICES, blank=True)
    to_status = models.CharField(max_length=13, choices=STATUS_CHOICES)
    at = models.DateTimeField()
    actor = models.CharField(max_length=150)
    reason = models.CharField(max_length=500, blank=True)
    attempt = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["at", "id"]
        indexes = [models.Index(fields=["session", "at"], name="transition_of_session")]

    def __str__(self) -> str:
        return f"{self.from_status or 'requested'} → {self.to_status}"


class KernelStatus(models.TextChoices):
    PENDING = "PENDING", _("Pending")
    ALLOCATED = "ALLOCATED", _("Allocated")
    RUNNING = "RUNNING", _("Running")
    TERMINATED = "TERMINATED", _("Terminated")


# Status of a session's kernels by the status of the session.
KERNEL_STATUS: dict[SessionStatus, KernelStatus] = {
    SessionStatus.PENDING: KernelStatus.PENDING,
    SessionStatus.SCHEDULED: KernelStatus.ALLOCATED,
    SessionStatus.INSTANTIATING: KernelStatus.ALLOCATED,
    SessionStatus.READY: KernelStatus.RUNNING,
    SessionStatus.RUNNING: KernelStatus.RUNNING,
    SessionStatus.COLLECTING: KernelStatus.RUNNING,
    SessionStatus.STOPPING: KernelStatus.RUNNING,
    SessionStatus.TERMINATED: KernelStatus.TERMINATED,
    SessionStatus.CANCELLED: KernelStatus.TERMINATED,
    SessionStatus.EXPIRED: KernelStatus.TERMINATED,
    SessionStatus.FAILED: KernelStatus.TERMINATED,
}


class Kernel(ResourceColumns, IdModel):
    """A lab node of a session; the unit of allocation."""

    session = models.ForeignKey(
        LabletSession, on_delete=models.CASCADE, related_name="kernels", db_index=False
    )
    node_label = models.CharField(max_length=MAX_NODE_NAME)
    node_definition = models.CharField(max_length=MAX_NODE_NAME)
    gpu = amount_column("gpu")
    status = models.CharField(max_length=10, choices=KernelStatus, default=KernelStatus.PENDING)
    attempt = models.PositiveSmallIntegerField(default=1)
    started_at = models.DateTimeField(null=True, blank=True)
    terminated_at = models.DateTimeField(null=True, blank=True)
    last_observed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["node_label"]
        constraints = [
            models.UniqueConstraint(fields=["session", "node_label"], name="kernel_of_node"),
            models.CheckConstraint(name="kernel_amounts_in_range", condition=NOT_NEGATIVE),
            models.CheckConstraint(name="kernel_status_known", condition=Q(status__in=KernelStatus.values)),
            models.CheckConstraint(
                name="kernel_terminates_after_start",
                condition=Q(started_at=None) | Q(terminated_at=None) | Q(terminated_at__gte=F("started_at")),
            ),
        ]

    def __str__(self) -> str:
        return self.node_label
