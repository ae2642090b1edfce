"""Fair-share policies, calculations and results of pools."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from fairshare.arithmetic.policy import PARENT, Policy, Weight
from fairshare.models.levels import ENGLISH_NAMES, Level
from lcm.domain.resources import RESOURCES
from lcm.models.base import DatedModel
from scheduling.models import Pool


class Normalisation(models.TextChoices):
    RELATIVE = "relative", _("Relative to the pool's usage")
    CAPACITY = "capacity", _("Relative to the pool's capacity")


class FairShareOrder(models.TextChoices):
    TREE = "tree", _("Level by level")
    CLASSIC = "classic", _("By the person's factor alone")


class FairSharePolicy(DatedModel):
    """How usage of a pool determines the order. A pool without a policy has the defaults."""

    pool = models.OneToOneField(Pool, on_delete=models.CASCADE, related_name="fair_share_policy")
    half_life_days = models.FloatField(default=7.0)
    lookback_days = models.PositiveIntegerField(default=28)
    normalisation = models.CharField(max_length=8, choices=Normalisation, default=Normalisation.RELATIVE)
    order = models.CharField(max_length=7, choices=FairShareOrder, default=FairShareOrder.TREE)
    resource_weights = models.JSONField(default=dict, blank=True)
    default_weight = models.FloatField(default=1.0)
    dampening_factor = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["pool__name"]
        verbose_name = _("fair-share policy")
        verbose_name_plural = _("fair-share policies")
        constraints = [
            models.CheckConstraint(
                name="policy_numbers_positive",
                condition=Q(
                    half_life_days__gt=0, lookback_days__gte=1, default_weight__gt=0, dampening_factor__gte=1
                ),
            ),
            models.CheckConstraint(
                name="policy_normalisation_known", condition=Q(normalisation__in=Normalisation.values)
            ),
            models.CheckConstraint(name="policy_order_known", condition=Q(order__in=FairShareOrder.values)),
        ]

    def __str__(self) -> str:
        return f"policy of {self.pool}"

    @property
    def values(self) -> Policy:
        return Policy(**{name: getattr(self, name) for name in POLICY_FIELDS})


POLICY_FIELDS = tuple(Policy.__dataclass_fields__)


class FairShareCalculation(models.Model):
    """One calculation for a pool: its time, days and policy."""

    id = models.BigAutoField(primary_key=True)
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="fair_share_calculations")
    at = models.DateTimeField()
    first_day = models.DateField()
    last_day = models.DateField()
    policy = models.JSONField(default=dict)
    duration_ms = models.PositiveIntegerField(default=0)
    subject_count = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["pool", "at"], name="calculation_of_pool")]

    def __str__(self) -> str:
        return f"calculation for {self.pool} at {self.at:%H:%M:%S}"


def _number(default: float, text: str) -> models.FloatField[Any, Any]:
    return models.FloatField(default=default, help_text=text)


class FairShare(models.Model):
    """A domain, project or person in a project in one pool: its weight and latest results.

    The days and the policy are in the pool's newest calculation, which wrote all of its rows.
    """

    id = models.BigAutoField(primary_key=True)
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="fair_shares", db_index=False)
    level = models.CharField(max_length=7, choices=Level)
    subject_id = models.UUIDField()
    parent_id = models.UUIDField()
    weight = models.FloatField(
        null=True, blank=True, help_text="Empty: the policy's default; 0: no priority, usage still counts."
    )
    uses_parent = models.BooleanField(
        default=False, db_default=False, help_text="It has no share of its own, as Slurm's fairshare=parent."
    )

    effective_weight = _number(1.0, "Weight used in the calculation.")
    share = _number(0.0, "Share among its siblings.")
    norm_share = _number(0.0, "Share of the pool.")
    cpu_hours = _number(0.0, "Decayed core-hours.")
    memory_hours = _number(0.0, "Decayed GB-hours of memory.")
    storage_hours = _number(0.0, "Decayed GB-hours of storage.")
    gpu_hours = _number(0.0, "Decayed GPU-hours.")
    usage = _number(0.0, "Weighted sum of all resources.")
    actual_usage = _number(0.0, "Share of the pool's usage.")
    effective_usage = _number(0.0, "Input of the factor.")
    factor = _number(1.0, "2^(-usage/share).")
    ratio = _number(0.0, "Share of its siblings' usage, relative to its share.")
    domain_level_factor = _number(1.0, "Compared first.")
    project_level_factor = _number(1.0, "Compared second.")
    user_level_factor = _number(1.0, "Compared last.")
    rank = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["pool_id", "level", "rank", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["pool", "level", "subject_id", "parent_id"], name="share_of_subject"
            ),
            models.CheckConstraint(
                name="share_weight_in_range",
                condition=Q(weight=None) | Q(weight__gte=0, uses_parent=False),
            ),
            models.CheckConstraint(name="share_level_known", condition=Q(level__in=Level.values)),
            models.CheckConstraint(name="share_factor_in_range", condition=Q(factor__gte=0, factor__lte=1)),
        ]
        indexes = [models.Index(fields=["pool", "parent_id"], name="share_of_parent")]

    def __str__(self) -> str:
        return f"share of {ENGLISH_NAMES[self.level]} {self.subject_id}"

    @property
    def own_weight(self) -> Weight:
        """Return the assigned weight: a number, “parent”, or None for the policy's default."""
        return PARENT if self.uses_parent else self.weight

    @own_weight.setter
    def own_weight(self, weight: Weight) -> None:
        self.uses_parent = weight == PARENT
        self.weight = None if weight is None or weight == PARENT else float(weight)

    @property
    def weight_source(self) -> str:
        return "policy" if self.own_weight is None else "own"

    @property
    def level_fair_share(self) -> float | None:
        """Return the level fair share.

        None means infinite (no usage, or a person with “parent”), 0 is last.
        """
        return 1.0 / self.ratio if self.ratio else None


RESULT_FIELDS = (
    "effective_weight", "share", "norm_share", *(f"{each.short}_hours" for each in RESOURCES),
    "usage", "actual_usage", "effective_usage", "factor", "ratio",
    "domain_level_factor", "project_level_factor", "user_level_factor", "rank",
)  # fmt: skip
