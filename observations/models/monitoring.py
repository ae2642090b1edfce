"""Processes that report themselves, and the scrape targets derived from them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from lcm.models import ApiToken
from lcm.models.base import IdModel


class TargetKind(models.TextChoices):
    CONTROLLER = "controller", _("Controller")
    WEB = "web", _("Web")
    WATCH = "watch", _("Watch")
    WORKER = "worker", _("Worker")
    SLOT = "slot", _("Slot")


class Presence(IdModel):
    """A process that reported itself, and the address of its metrics.

    The name of a controller belongs to the token it was reported with, also after the controller has ended.
    LCM's own processes have no token.
    """

    kind = models.CharField(max_length=10, choices=TargetKind)
    name = models.CharField(max_length=200)
    # Empty: the process has no metrics.
    address = models.CharField(max_length=200, blank=True)
    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    # None: the controller has ended.
    seen_at = models.DateTimeField(null=True)
    silent_since = models.DateTimeField(
        null=True, help_text="When LCM noticed that its heartbeats are missing; empty after the next one."
    )
    # Seconds its clock is ahead of LCM's; controllers measure it.
    clock_skew = models.DecimalField(max_digits=12, decimal_places=3, null=True)

    class Meta:
        ordering = ["kind", "name"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "name"], name="presence_once"),
            models.CheckConstraint(name="presence_kind_known", condition=Q(kind__in=TargetKind.values)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class ScrapeTarget(IdModel):
    """An address for Prometheus to scrape, with its labels."""

    kind = models.CharField(max_length=10, choices=TargetKind)
    name = models.CharField(max_length=200)
    address = models.CharField(max_length=200)
    labels = models.JSONField(default=dict, blank=True)
    since = models.DateTimeField()

    class Meta:
        ordering = ["kind", "name"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "name"], name="scrape_target_once"),
            models.CheckConstraint(name="scrape_target_kind_known", condition=Q(kind__in=TargetKind.values)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
