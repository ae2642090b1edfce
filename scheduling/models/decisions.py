"""Decisions of the scheduler with their reasons, and the order of the queue."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from scheduling.models.pools import Pool
from scheduling.models.reservations import Reservation
from scheduling.models.slots import Slot
from scheduling.models.ticks import TickRun


class DecisionOutcome(models.TextChoices):
    PLACED = "placed", _("Placed")
    WAITING = "waiting", _("Waiting")
    HELD = "held", _("Space is being cleared")
    REFUSED = "refused", _("Not yet")
    IMPOSSIBLE = "impossible", _("Impossible here")


class Explanation(models.Model):
    """A wait reason as text and by slot; one row for all reservations it applies to."""

    digest = models.CharField(max_length=32, primary_key=True)
    main_reason = models.CharField(max_length=40)
    message = models.CharField(max_length=500)
    reasons = models.JSONField(
        default=list, help_text="Each with code, plugin, text, number of slots and example slots."
    )
    slots = models.PositiveIntegerField(help_text="Number of READY slots evaluated.")
    used_at = models.DateTimeField(default=timezone.now, help_text="When a cycle last used it.")

    def __str__(self) -> str:
        return self.message


class Decision(models.Model):
    """The outcome of a cycle for a reservation; written when it differs from the previous outcome.

    Thousands of rows are written at once, and the tick has just read the rows they refer to: hence no foreign
    key constraints.
    """

    id = models.BigAutoField(primary_key=True)
    reservation = models.ForeignKey(
        Reservation, on_delete=models.CASCADE, db_constraint=False, related_name="decisions", db_index=False
    )
    # Written before the row of the tick, and kept longer.
    tick = models.ForeignKey(
        TickRun, on_delete=models.DO_NOTHING, db_constraint=False, related_name="decisions", db_index=False
    )
    pool = models.ForeignKey(
        Pool, on_delete=models.CASCADE, db_constraint=False, related_name="+", db_index=False
    )
    at = models.DateTimeField()
    outcome = models.CharField(max_length=10, choices=DecisionOutcome)
    position = models.PositiveIntegerField()
    slot = models.ForeignKey(
        Slot, on_delete=models.SET_NULL, null=True, db_constraint=False, related_name="+", db_index=False
    )
    why = models.ForeignKey(
        Explanation,
        on_delete=models.DO_NOTHING,
        null=True,
        db_constraint=False,
        related_name="decisions",
        db_index=False,
    )
    scores = models.JSONField(default=dict, blank=True, help_text="Score of the chosen slot by plugin.")

    class Meta:
        ordering = ["-at", "position"]
        constraints = [
            models.CheckConstraint(
                name="decision_outcome_known", condition=Q(outcome__in=DecisionOutcome.values)
            ),
        ]
        indexes = [
            models.Index(fields=["reservation", "at"], name="decision_of_reservation"),
            models.Index(fields=["tick", "position"], name="decision_of_tick"),
            models.Index(fields=["pool", "at"], name="decision_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.reservation}: {self.get_outcome_display().lower()}"


class QueueOrder(models.Model):
    """The order of a pool's waiting reservations in the last cycle: sixteen bytes per id."""

    pool = models.OneToOneField(Pool, on_delete=models.CASCADE, primary_key=True, related_name="queue_order")
    at = models.DateTimeField()
    ids = models.BinaryField()

    def __str__(self) -> str:
        return f"queue of {self.pool}"
