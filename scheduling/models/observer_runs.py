"""Records of the coordinator."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from lcm.models import LabletSession
from lcm.models.base import IdModel


class RunKind(models.TextChoices):
    OBSERVER = "observer", _("Observer")
    HANDLER = "handler", _("Lifecycle handler")


class ObserverRun(IdModel):
    """One run of an observer or lifecycle handler: start, duration, counts, failures."""

    kind = models.CharField(max_length=8, choices=RunKind, default=RunKind.OBSERVER)
    observer = models.CharField(max_length=63)
    started_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()
    success_count = models.PositiveIntegerField(default=0)
    failure_count = models.PositiveIntegerField(default=0)
    stale_count = models.PositiveIntegerField(default=0)
    skipped_count = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-started_at", "-id"]
        verbose_name = _("run")
        constraints = [
            models.CheckConstraint(name="run_kind_known", condition=Q(kind__in=RunKind.values)),
        ]
        indexes = [
            models.Index(fields=["observer", "started_at"], name="run_of_observer"),
            models.Index(fields=["started_at", "id"], name="run_newest"),
            models.Index(fields=["duration_ms", "id"], name="run_slowest"),
            models.Index(fields=["failure_count", "id"], name="run_most_failed"),
            models.Index(
                fields=["started_at"], name="run_failed", condition=~Q(error="") | Q(failure_count__gt=0)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.observer} at {self.started_at:%Y-%m-%d %H:%M:%S}"


class Observer(models.Model):
    """An observer or lifecycle handler that was late or failed at least once."""

    name = models.CharField(max_length=63, primary_key=True)
    failing_announced_at = models.DateTimeField(
        null=True, help_text="When LCM announced that it is late or fails; empty after it announced the end."
    )

    class Meta:
        ordering = ["name"]
        verbose_name = _("observer")

    def __str__(self) -> str:
        return self.name


class HandlerFailure(models.Model):
    """Consecutive failures of a handler with a session; deleted when the session changes status."""

    id = models.BigAutoField(primary_key=True)
    handler = models.CharField(max_length=63)
    session = models.ForeignKey(LabletSession, on_delete=models.CASCADE, related_name="+")
    failures = models.PositiveSmallIntegerField(default=1)
    last_at = models.DateTimeField()
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-last_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["handler", "session"], name="handler_failure_once"),
        ]

    def __str__(self) -> str:
        return f"{self.handler} failed {self.failures} ×"
