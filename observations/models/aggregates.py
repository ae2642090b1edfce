"""Aggregates and assessments of a definition's sessions."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from lcm.models import DefinitionRevision, LabletDefinition
from lcm.models.base import IdModel
from observations.arithmetic.measures import CPU, MEMORY, USED
from observations.arithmetic.recommendation import Provisioning
from observations.arithmetic.statistics import LEVELS


class ProvisioningClass(models.TextChoices):
    UNDER_PROVISIONED = Provisioning.UNDER_PROVISIONED.value, _("Under-provisioned")
    OVER_PROVISIONED = Provisioning.OVER_PROVISIONED.value, _("Over-provisioned")
    RIGHT_SIZED = Provisioning.RIGHT_SIZED.value, _("Right-sized")
    NOT_ENOUGH_DATA = Provisioning.NOT_ENOUGH_DATA.value, _("Not enough data")


class ResourceAggregate(IdModel):
    """Samples of a definition, epoch and revision as histograms; see `arithmetic.histogram`."""

    definition = models.ForeignKey(
        LabletDefinition, on_delete=models.CASCADE, related_name="aggregates", db_index=False
    )
    epoch = models.CharField(max_length=64)
    revision = models.ForeignKey(
        DefinitionRevision, on_delete=models.CASCADE, related_name="aggregates", db_index=False
    )
    digest = models.JSONField(default=dict)

    class Meta:
        verbose_name = _("aggregate")
        constraints = [
            models.UniqueConstraint(fields=["definition", "epoch", "revision"], name="aggregate_once")
        ]

    def __str__(self) -> str:
        return f"aggregate of {self.revision_id}"


def _recommended() -> models.DecimalField[Any, Any]:
    return models.DecimalField(max_digits=10, decimal_places=2, null=True, blank=True)


def _hours() -> models.DecimalField[Any, Any]:
    return models.DecimalField(max_digits=14, decimal_places=2, default=Decimal(0))


class DefinitionAssessment(models.Model):
    """Current assessment of a definition: class, recommendation and waste. One row per definition."""

    definition = models.OneToOneField(
        LabletDefinition, on_delete=models.CASCADE, primary_key=True, related_name="assessment"
    )
    epoch = models.CharField(max_length=64, blank=True)
    provisioning = models.CharField(
        max_length=17, choices=ProvisioningClass, default=ProvisioningClass.NOT_ENOUGH_DATA
    )
    confidence = models.CharField(max_length=15, default=LEVELS[0])
    n = models.PositiveIntegerField(default=0)
    last_observed_at = models.DateTimeField(null=True, blank=True)
    recommended_cpu_cores = _recommended()
    recommended_memory_gb = _recommended()
    recommended_storage_gb = _recommended()
    flags = models.JSONField(default=dict, help_text="Resource → under or over.")
    reasons = models.JSONField(default=list)
    sources = models.JSONField(default=dict, help_text="Resource → used or allocated.")
    days = models.JSONField(default=dict, help_text="Time held and waste of sessions by day.")
    waste_cpu = _hours()
    waste_memory = _hours()
    held_seconds = models.PositiveBigIntegerField(default=0)
    priority = models.DecimalField(
        max_digits=16, decimal_places=2, default=Decimal(0), help_text="Review priority."
    )
    due_at = models.DateTimeField(null=True, blank=True, help_text="When it changes by time alone.")
    snoozed_until = models.DateTimeField(null=True, blank=True)
    dismissed = models.JSONField(null=True, blank=True, help_text="The dismissed recommendation.")
    regression_snoozed = models.BooleanField(
        default=False, help_text="The regression was known when the review was snoozed or dismissed."
    )
    snooze_reason = models.CharField(max_length=500, blank=True)
    snoozed_by = models.CharField(max_length=150, blank=True)

    class Meta:
        verbose_name = _("assessment")
        constraints = [
            models.CheckConstraint(
                name="assessment_provisioning_known", condition=Q(provisioning__in=ProvisioningClass.values)
            ),
            models.CheckConstraint(name="assessment_confidence_known", condition=Q(confidence__in=LEVELS)),
        ]
        indexes = [
            models.Index(fields=["priority", "definition"], name="assessment_priority"),
            models.Index(fields=["waste_cpu", "definition"], name="assessment_waste_cpu"),
            models.Index(fields=["waste_memory", "definition"], name="assessment_waste_memory"),
            models.Index(fields=["n", "definition"], name="assessment_sessions"),
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="assessment_due"),
        ]

    def __str__(self) -> str:
        return f"assessment of {self.definition_id}"

    def sources_in(self, epoch: str) -> dict[str, str]:
        """Return the source of each resource, used or allocated; empty for another epoch."""
        return dict(self.sources) if self.epoch == epoch else {}

    def wasted(self, resource: str) -> Decimal | None:
        """Return wasted core-hours or GB-hours; None if unknown.

        Without measured use, the waste is a lower bound, and 0 means unknown.
        """
        waste = {CPU: self.waste_cpu, MEMORY: self.waste_memory}[resource]
        return waste if waste or self.sources.get(resource) == USED else None
