"""Slots: places for worker instances, their launch attempts and ports."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from lcm.models import ApiToken, LabletSession
from lcm.models.base import DatedModel, IdModel
from lcm.models.definitions import label_map
from lcm.models.resources import ResourceColumns
from scheduling.models.pools import Pool


class SlotState(models.TextChoices):
    EMPTY = "EMPTY", _("Empty")
    LAUNCHING = "LAUNCHING", _("Launching")
    BOOTING = "BOOTING", _("Booting")
    BINDING = "BINDING", _("Binding")
    READY = "READY", _("Ready")
    DRAINING = "DRAINING", _("Draining")
    TERMINATING = "TERMINATING", _("Terminating")
    ERROR = "ERROR", _("Error")


IN_FLIGHT = (SlotState.LAUNCHING, SlotState.BOOTING, SlotState.BINDING)
LIVE = (*IN_FLIGHT, SlotState.READY, SlotState.DRAINING)
DRAINABLE = (SlotState.BOOTING, SlotState.BINDING, SlotState.READY)
# States that count against a pool's maximum: an instance runs, starts or terminates.
OCCUPIED = (*LIVE, SlotState.TERMINATING)


def readable_labels(stored: Any) -> dict[str, str]:
    """Return a slot's labels; empty if the stored value is not a mapping of names to texts."""
    is_map = isinstance(stored, dict) and all(isinstance(text, str) for text in stored.values())
    return stored if is_map else {}


class Slot(ResourceColumns, DatedModel):
    """A place for one worker instance."""

    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="slots", db_index=False)
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=11, choices=SlotState, default=SlotState.EMPTY)
    instance_id = models.CharField(max_length=100, blank=True)
    endpoint = models.CharField(max_length=300, blank=True)
    version = models.CharField(max_length=60, blank=True)
    offering = models.CharField(max_length=100, blank=True)
    is_spot = models.BooleanField(default=False)
    labels = models.JSONField(default=dict, blank=True, validators=[label_map])
    max_leases = models.PositiveIntegerField()
    lease_count = models.PositiveIntegerField(default=0)
    cordoned = models.BooleanField(default=False)
    reason = models.CharField(max_length=500, blank=True)
    last_state_change = models.DateTimeField(default=timezone.now)
    state_deadline = models.DateTimeField(null=True, blank=True)
    idle_since = models.DateTimeField(null=True, blank=True)
    interruption_deadline = models.DateTimeField(null=True, blank=True)
    last_heartbeat = models.DateTimeField(null=True, blank=True)
    heartbeat_lost_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When LCM noticed that heartbeats are missing; empty after the next one.",
    )
    unanswered_since = models.DateTimeField(
        null=True, blank=True, help_text="Since when the silent worker fails probes."
    )
    failed_probes = models.PositiveSmallIntegerField(default=0, help_text="Consecutive failed probes.")
    failed_together = models.BooleanField(default=False, help_text="All other probed workers failed as well.")
    reported_capacity = models.JSONField(
        null=True,
        blank=True,
        help_text="Capacity that the worker reports; placement uses the pool's settings.",
    )

    class Meta:
        ordering = ["pool__name", "number"]
        constraints = [
            models.UniqueConstraint(fields=["pool", "number"], name="slot_number_in_pool"),
            models.UniqueConstraint(
                fields=["pool", "instance_id"], condition=~Q(instance_id=""), name="slot_of_instance"
            ),
            models.CheckConstraint(
                name="slot_leases_within_limit",
                condition=Q(lease_count__gte=0, lease_count__lte=models.F("max_leases")),
            ),
            models.CheckConstraint(name="slot_state_known", condition=Q(state__in=SlotState.values)),
        ]
        indexes = [
            models.Index(fields=["pool", "state", "number"], name="slot_by_state"),
            models.Index(
                fields=["state_deadline"], condition=Q(state_deadline__isnull=False), name="slot_by_deadline"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return f"{self.pool.name}-{self.number:02}"

    @property
    def readable_labels(self) -> dict[str, str]:
        return readable_labels(self.labels)


class AttemptOutcome(models.TextChoices):
    OPEN = "open", _("Open")
    LAUNCHED = "launched", _("Launched")
    REFUSED = "refused", _("Refused")
    FAILED = "failed", _("Failed")
    LOST = "lost", _("Lost")


class LaunchAttempt(IdModel):
    """One attempt to fill a slot; written before the provider is called."""

    slot = models.ForeignKey(Slot, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    token = models.CharField(max_length=64, unique=True)
    on_demand_only = models.BooleanField(
        default=False, help_text="For non-preemptible work: only on-demand offerings are requested."
    )
    worker = models.CharField(max_length=100, blank=True, help_text="The listed worker to use.")
    offering = models.CharField(max_length=100, blank=True)
    requested_at = models.DateTimeField()
    due_at = models.DateTimeField(
        default=timezone.now, help_text="When its task is enqueued again if it is still open."
    )
    redrives = models.PositiveSmallIntegerField(default=0, help_text="How often its task was enqueued again.")
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=8, choices=AttemptOutcome, default=AttemptOutcome.OPEN)
    instance_id = models.CharField(max_length=100, blank=True)
    category = models.CharField(max_length=13, blank=True)
    error = models.CharField(max_length=500, blank=True)
    redeemed_at = models.DateTimeField(
        null=True, blank=True, help_text="When its worker redeemed the boot token."
    )
    api_token = models.ForeignKey(
        ApiToken, on_delete=models.SET_NULL, null=True, blank=True, related_name="launch_attempts"
    )

    class Meta:
        ordering = ["-requested_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["slot"], condition=Q(outcome="open"), name="attempt_open_once"),
            models.CheckConstraint(
                name="attempt_outcome_known", condition=Q(outcome__in=AttemptOutcome.values)
            ),
        ]
        indexes = [models.Index(fields=["slot", "requested_at"], name="attempt_of_slot")]

    def __str__(self) -> str:
        return f"attempt {self.token[:8]}"


class PortAllocation(IdModel):
    """A reserved port of a worker: held by a session, or leaked."""

    slot = models.ForeignKey(Slot, on_delete=models.CASCADE, related_name="ports", db_index=False)
    port = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    session = models.ForeignKey(
        LabletSession, on_delete=models.CASCADE, null=True, blank=True, related_name="port_allocations"
    )
    leaked = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    held_until = models.DateTimeField(
        null=True, blank=True, help_text="Only a later observation can find the port free."
    )

    class Meta:
        ordering = ["port"]
        verbose_name = _("port")
        constraints = [
            models.UniqueConstraint(fields=["slot", "port"], name="port_once_on_slot"),
            models.CheckConstraint(name="port_in_range", condition=Q(port__gte=1, port__lte=65_535)),
            models.CheckConstraint(
                name="port_held_or_leaked", condition=Q(session__isnull=False) | Q(leaked=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.port} {self.name}"
