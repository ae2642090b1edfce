"""Port drift and its reviews."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from lcm.models import LabletDefinition, LabletSession
from lcm.models.base import IdModel
from observations.arithmetic.drift import CHANGED, CONFLICT, EXTRA, KINDS, MISSING

KIND_CHOICES = [(kind, kind.capitalize()) for kind in KINDS]
# Labels for users: an extra port is called leaked.
KIND_LABELS = {CONFLICT: _("Conflict"), EXTRA: _("Leaked"), CHANGED: _("Changed"), MISSING: _("Missing")}


class ReviewState(models.TextChoices):
    OPEN = "open", _("Open")
    ACKNOWLEDGED = "acknowledged", _("Acknowledged")
    RESOLVED = "resolved", _("Resolved")


class DriftReview(IdModel):
    """A difference between planned and observed ports that sessions of a definition share."""

    definition = models.ForeignKey(
        LabletDefinition, on_delete=models.CASCADE, related_name="drift_reviews", db_index=False
    )
    fingerprint = models.CharField(max_length=16)
    kind = models.CharField(max_length=8, choices=KIND_CHOICES)
    name = models.CharField(max_length=200)
    state = models.CharField(max_length=12, choices=ReviewState, default=ReviewState.OPEN)
    acknowledged_until = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    actor = models.CharField(max_length=150, blank=True)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    sessions = models.PositiveIntegerField(default=1)
    clean_streak = models.PositiveSmallIntegerField(default=0)
    last_session = models.ForeignKey(LabletSession, on_delete=models.SET_NULL, null=True, related_name="+")
    example = models.JSONField(default=dict)

    class Meta:
        verbose_name = _("port drift")
        verbose_name_plural = _("port drift")
        constraints = [
            models.UniqueConstraint(fields=["definition", "fingerprint"], name="drift_review_once"),
            models.CheckConstraint(name="drift_review_kind_known", condition=Q(kind__in=KINDS)),
            models.CheckConstraint(
                name="drift_review_state_known", condition=Q(state__in=ReviewState.values)
            ),
            models.CheckConstraint(
                name="drift_review_acknowledged_until",
                condition=~Q(state=ReviewState.ACKNOWLEDGED)
                | (Q(acknowledged_until__isnull=False) & ~Q(kind=CONFLICT)),
            ),
        ]
        indexes = [models.Index(fields=["last_seen", "id"], name="drift_newest")]

    def __str__(self) -> str:
        return f"{self.name} {self.kind}"

    def state_at(self, now: datetime) -> ReviewState:
        """Return the state at this time; an expired acknowledgement counts as open."""
        if self.state == ReviewState.ACKNOWLEDGED and (self.acknowledged_until or now) <= now:
            return ReviewState.OPEN
        return ReviewState(self.state)


def is_open(now: datetime) -> Q:
    """Return a filter for reviews that are open or whose acknowledgement has expired."""
    expired = Q(state=ReviewState.ACKNOWLEDGED, acknowledged_until__lte=now)
    return Q(state=ReviewState.OPEN) | expired
