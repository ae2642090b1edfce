"""Requests to observe a running session now."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import F, Q

from lcm.models import LabletSession
from lcm.models.base import IdModel


class RequestState(models.TextChoices):
    OPEN = "open", "Open"
    ANSWERED = "answered", "Answered"
    TIMED_OUT = "timed_out", "Timed out"


class ObservationRequest(IdModel):
    """A user's request; the controller answers by posting an observation, or the request times out."""

    session = models.ForeignKey(
        LabletSession, on_delete=models.CASCADE, related_name="observation_requests", db_index=False
    )
    state = models.CharField(max_length=9, choices=RequestState, default=RequestState.OPEN)
    actor = models.CharField(max_length=150)
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-requested_at"]
        verbose_name = "observation request"
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
