"""Records of ticks, and leases of processes."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from lcm.models.base import IdModel
from scheduling.models.pools import Pool


class ProcessLease(models.Model):
    """The exclusive right to do something for a while; it expires if its holder dies."""

    name = models.CharField(max_length=100, primary_key=True)
    holder = models.CharField(max_length=64)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class TickRun(IdModel):
    """One tick of a pool: start, duration, counts, failures."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="ticks", db_index=False)
    started_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()
    step_ms = models.JSONField(default=dict)
    counts = models.JSONField(default=dict)
    errors = models.JSONField(default=dict)
    plugins = models.JSONField(default=dict, help_text="Milliseconds and failures by plugin.")

    class Meta:
        ordering = ["-started_at", "-id"]
        verbose_name = _("tick")
        indexes = [
            models.Index(fields=["pool", "started_at"], name="tick_of_pool"),
            models.Index(fields=["started_at", "id"], name="tick_newest"),
            models.Index(fields=["duration_ms", "id"], name="tick_slowest"),
        ]

    def __str__(self) -> str:
        return f"tick of {self.pool} at {self.started_at:%H:%M:%S}"


class SimulatedInstance(models.Model):
    """An instance of the `simulated` runtime, which keeps its state in the database."""

    id = models.CharField(max_length=40, primary_key=True)
    pool = models.CharField(max_length=63, db_index=True)
    slot_id = models.CharField(max_length=40)
    token = models.CharField(max_length=64, unique=True)
    market = models.CharField(max_length=9, default="on-demand")
    launched_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    interrupted_at = models.DateTimeField(null=True)
    notice_taken = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.id
