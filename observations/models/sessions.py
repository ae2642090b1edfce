"""Observations of sessions, and requests to observe a running session now."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from lcm.models import DefinitionRevision, LabletDefinition, LabletSession
from lcm.models.base import IdModel


class NotCountedReason(models.TextChoices):
    """Why a session is excluded from the aggregate."""

    NOT_COLLECTED = "not_collected", _("The session ended before Collecting")
    TOO_SHORT = "too_short", _("The nodes were up too briefly")
    NOTHING_MEASURED = "not_measured", _("No resource was measured")
    EXCLUDED = "excluded", _("Excluded by an administrator")


def _amount() -> models.DecimalField[Any, Any]:
    return models.DecimalField(max_digits=10, decimal_places=2, null=True, blank=True)


class SessionObservation(models.Model):
    """Observations of one session. Cores and GB, rounded up to hundredths; null means unknown."""

    session = models.OneToOneField(
        LabletSession, on_delete=models.CASCADE, primary_key=True, related_name="observation"
    )
    definition = models.ForeignKey(
        LabletDefinition, on_delete=models.CASCADE, related_name="observations", db_index=False
    )
    revision = models.ForeignKey(
        DefinitionRevision, on_delete=models.CASCADE, related_name="observations", db_index=False
    )
    epoch = models.CharField(max_length=64)
    observed_at = models.DateTimeField(help_text="Time of the newest observation.")
    recorded_at = models.DateTimeField()
    seen = models.JSONField(default=list, help_text="Fingerprints of the counted observations.")
    observed_resources = models.JSONField(help_text="The newest observation in full.")
    peak_resources = models.JSONField(
        null=True, help_text="The observation with the most memory in full, unless it is the newest."
    )
    observed_ports = models.JSONField(null=True)
    drift = models.JSONField(default=list)

    cpu_allocated, cpu_used = _amount(), _amount()
    memory_allocated, memory_used = _amount(), _amount()
    storage_allocated, storage_used = _amount(), _amount()
    peak_cpu_allocated, peak_cpu_used = _amount(), _amount()
    peak_memory_allocated, peak_memory_used = _amount(), _amount()
    peak_storage_allocated, peak_storage_used = _amount(), _amount()

    booted_seconds = models.PositiveIntegerField(default=0)
    held_seconds = models.PositiveIntegerField(default=0)
    reached_collecting = models.BooleanField(default=False)
    is_sample = models.BooleanField(default=False, help_text="Whether it counts in the aggregate.")
    not_counted_reason = models.CharField(max_length=13, choices=NotCountedReason, blank=True)
    excluded_reason = models.CharField(max_length=500, blank=True)
    excluded_by = models.CharField(max_length=150, blank=True)

    class Meta:
        verbose_name = _("observed session")
        constraints = [
            models.CheckConstraint(
                name="observation_sample_or_not_counted",
                condition=Q(is_sample=True, not_counted_reason="")
                | Q(is_sample=False, not_counted_reason__in=NotCountedReason.values),
            ),
        ]
        indexes = [
            models.Index(fields=["definition", "observed_at", "session"], name="observed_of_definition"),
            models.Index(fields=["observed_at", "session"], name="observed_newest"),
            models.Index(
                fields=["definition", "observed_at"], condition=Q(is_sample=False), name="not_counted_newest"
            ),
            models.Index(
                fields=["definition", "observed_at"],
                condition=Q(not_counted_reason="excluded"),
                name="excluded_newest",
            ),
            models.Index(
                fields=["definition", "epoch", "observed_at"],
                condition=Q(is_sample=True),
                name="sample_newest",
            ),
            models.Index(
                fields=["definition", "epoch", "peak_cpu_used"],
                condition=Q(is_sample=True),
                name="sample_by_cpu",
            ),
            models.Index(
                fields=["definition", "epoch", "peak_memory_used"],
                condition=Q(is_sample=True),
                name="sample_by_memory",
            ),
            models.Index(
                fields=["definition", "epoch", "peak_storage_used"],
                condition=Q(is_sample=True),
                name="sample_by_storage",
            ),
        ]

    def __str__(self) -> str:
        return f"observation of {self.session_id.hex[:6]}"


class RequestState(models.TextChoices):
    OPEN = "open", _("Open")
    COMPLETED = "completed", _("Completed")
    TIMED_OUT = "timed_out", _("Timed out")


class ObservationRequest(IdModel):
    """A user's request; the controller completes it by posting an observation, or the request times out."""

    session = models.ForeignKey(
        LabletSession, on_delete=models.CASCADE, related_name="observation_requests", db_index=False
    )
    state = models.CharField(max_length=9, choices=RequestState, default=RequestState.OPEN)
    actor = models.CharField(max_length=150)
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-requested_at"]
        verbose_name = _("observation request")
        constraints = [
            models.UniqueConstraint(
                fields=["session"], condition=Q(state=RequestState.OPEN), name="request_open_once"
            ),
            models.CheckConstraint(name="request_state_known", condition=Q(state__in=RequestState.values)),
            models.CheckConstraint(
                name="request_expires_later", condition=Q(expires_at__gt=F("requested_at"))
            ),
        ]
        indexes = [models.Index(fields=["session", "requested_at"], name="request_of_session")]

    def __str__(self) -> str:
        return f"request of {self.requested_at:%H:%M:%S}"

    def state_at(self, now: datetime) -> RequestState:
        """Return the state at this time; an open request past its deadline is timed out."""
        if self.state == RequestState.OPEN and self.expires_at <= now:
            return RequestState.TIMED_OUT
        return RequestState(self.state)
