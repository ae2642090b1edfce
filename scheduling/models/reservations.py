"""Reservations: claims on capacity by a session or another holder."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from lcm.models import LabletSession, Priority
from lcm.models.base import IdModel
from lcm.models.resources import NOT_NEGATIVE, ResourceColumns
from scheduling.models.pools import Pool
from scheduling.models.slots import Slot


class Phase(models.TextChoices):
    PENDING = "PENDING", _("Pending")
    READY = "READY", _("Ready")
    RELEASED = "RELEASED", _("Released")
    EXPIRED = "EXPIRED", _("Expired")
    CANCELLED = "CANCELLED", _("Cancelled")
    FAILED = "FAILED", _("Failed")


ACTIVE_PHASES = (Phase.PENDING, Phase.READY)


class Reservation(ResourceColumns, IdModel):
    """A claim on capacity: it waits (PENDING), holds a slot (READY), and ends."""

    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="reservations", db_index=False)
    session = models.ForeignKey(
        LabletSession, on_delete=models.CASCADE, null=True, blank=True, related_name="reservations"
    )
    holder = models.CharField(max_length=100, blank=True, help_text="The holder, if it has no session.")
    slot = models.ForeignKey(
        Slot, on_delete=models.PROTECT, null=True, blank=True, related_name="reservations", db_index=False
    )
    phase = models.CharField(max_length=9, choices=Phase, default=Phase.PENDING)
    port_names = models.JSONField(default=list, blank=True)
    priority = models.PositiveSmallIntegerField(choices=Priority, default=Priority.NORMAL)
    preemptible = models.BooleanField(default=False)
    attempt = models.PositiveSmallIntegerField(default=1)
    ttl_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="A holder without a session must renew within this time."
    )
    created_at = models.DateTimeField()
    joins_queue_at = models.DateTimeField(
        null=True, blank=True, help_text="When an advance booking joins the queue."
    )
    target_exceeded_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When LCM noticed that its session exceeds the wait target of the pool.",
    )
    assigned_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=500, blank=True)

    spread = models.BooleanField(default=False, help_text="Its kernels may be on several slots.")
    labels = models.JSONField(default=dict, blank=True, help_text="Labels that a slot must have.")
    devices = models.JSONField(default=list, blank=True, help_text="GPUs as [device, amount] pairs.")
    held_slot = models.ForeignKey(
        Slot, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False,
        help_text="The slot that is being cleared for it.",
    )  # fmt: skip
    held_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["session"], condition=Q(phase__in=ACTIVE_PHASES), name="reservation_active_once"
            ),
            models.CheckConstraint(
                name="reservation_held_by_someone", condition=Q(session__isnull=False) | ~Q(holder="")
            ),
            models.CheckConstraint(
                name="reservation_ready_on_a_slot", condition=~Q(phase=Phase.READY) | Q(slot__isnull=False)
            ),
            models.CheckConstraint(name="reservation_amounts_in_range", condition=NOT_NEGATIVE),
            models.CheckConstraint(name="reservation_phase_known", condition=Q(phase__in=Phase.values)),
        ]
        indexes = [
            models.Index(fields=["created_at", "id"], name="reservation_newest"),
            models.Index(
                fields=["pool", "priority", "created_at", "joins_queue_at"],
                condition=Q(phase="PENDING"),
                name="reservation_queue",
            ),
            # Sessions that wait within the wait target of their pool, by the start of their wait.
            models.Index(
                "pool",
                Coalesce("joins_queue_at", "created_at"),
                condition=Q(phase="PENDING", session__isnull=False, target_exceeded_at=None),
                name="reservation_within_target",
            ),
            models.Index(fields=["slot"], condition=Q(phase="READY"), name="reservation_on_slot"),
            models.Index(
                fields=["pool", "released_at", "slot"],
                condition=Q(released_at__isnull=False),
                name="reservation_ended",
            ),
            models.Index(
                fields=["expires_at"],
                condition=Q(phase__in=ACTIVE_PHASES, expires_at__isnull=False),
                name="reservation_expiry",
            ),
        ]

    def __str__(self) -> str:
        return f"reservation {self.short_id}"

    @property
    def verdict(self) -> str:
        """Return the last cycle's verdict: outcome and wait reason; empty before the first cycle."""
        if self.assigned_at:
            return "placed"
        found = getattr(self, "last_verdict", None)
        return found.summary if found else ""


class LastVerdict(models.Model):
    """The last cycle's verdict on a reservation that it did not place.

    A table of its own, because all waiting reservations may change at once: these rows are small and have one
    index. Only the tick writes them, so the database need not check each reservation.
    """

    reservation = models.OneToOneField(
        Reservation,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="last_verdict",
        db_constraint=False,
    )
    summary = models.CharField(max_length=60)

    def __str__(self) -> str:
        return self.summary


class ReservationPart(ResourceColumns, IdModel):
    """The share of a spread reservation on one of its slots; deleted when it ends."""

    reservation = models.ForeignKey(
        Reservation, on_delete=models.CASCADE, related_name="parts", db_index=False
    )
    slot = models.ForeignKey(Slot, on_delete=models.PROTECT, related_name="parts")
    kernels = models.JSONField(default=list)
    devices = models.JSONField(default=list, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["reservation", "slot"], name="part_once_on_slot"),
            models.CheckConstraint(name="part_amounts_in_range", condition=NOT_NEGATIVE),
        ]

    def __str__(self) -> str:
        return f"part of {self.reservation} on {self.slot}"


class EndedPart(IdModel):
    """A slot on which a spread reservation had a part until it ended, for timelines."""

    reservation = models.ForeignKey(
        Reservation, on_delete=models.CASCADE, related_name="ended_parts", db_index=False
    )
    slot = models.ForeignKey(Slot, on_delete=models.CASCADE, related_name="ended_parts")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["reservation", "slot"], name="ended_part_once_on_slot"),
        ]

    def __str__(self) -> str:
        return f"ended part of {self.reservation} on {self.slot}"
