"""Pools: kinds of workers with a policy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from lcm.models.base import DatedModel
from lcm.models.people import slug_name
from lcm.models.resources import REQUIRED_POSITIVE, ResourceColumns, amount_column

MAX_SLOTS = 20_000


class SpotPolicy(models.TextChoices):
    NEVER = "never", _("On-demand only")
    FALLBACK = "fallback", _("Spot, on-demand fallback")
    ONLY = "only", _("Spot only")


def _seconds(default: int) -> models.PositiveIntegerField[Any, Any]:
    return models.PositiveIntegerField(
        default=default, validators=[MinValueValidator(1), MaxValueValidator(86_400)]
    )


class Pool(ResourceColumns, DatedModel):
    """A kind of worker: number of slots, capacity of each, and runtime."""

    name = models.CharField(max_length=63, unique=True, validators=[slug_name])
    description = models.CharField(max_length=300, blank=True)
    system = models.CharField(max_length=30, default="cml", help_text="System of its workers.")
    enabled = models.BooleanField(default=True)
    runtime = models.CharField(max_length=30, default="simulated")
    runtime_settings = models.JSONField(default=dict, blank=True)
    spot_policy = models.CharField(max_length=8, choices=SpotPolicy, default=SpotPolicy.NEVER)

    scheduler = models.TextField(
        blank=True,
        max_length=20_000,
        help_text="Actions and plugins with their arguments, as YAML; empty for the default.",
    )

    min_slots = models.PositiveIntegerField(default=0)
    warm_slots = models.PositiveIntegerField(
        default=0, help_text="Empty READY slots kept for the next session."
    )
    max_slots = models.PositiveIntegerField(
        default=4, validators=[MinValueValidator(1), MaxValueValidator(MAX_SLOTS)]
    )
    max_leases = models.PositiveIntegerField(
        default=10, validators=[MinValueValidator(1), MaxValueValidator(1_000)]
    )
    cpu_cores = amount_column("cpu_cores", default=16)
    memory_gb = amount_column("memory_gb", default=64)
    storage_gb = amount_column("storage_gb", default=500)
    first_port = models.PositiveIntegerField(default=2000)
    last_port = models.PositiveIntegerField(default=7999)

    idle_seconds = _seconds(600)
    target_wait_seconds = _seconds(900)
    launch_timeout = _seconds(300)
    boot_timeout = _seconds(300)
    binding_timeout = _seconds(180)
    drain_timeout = _seconds(120)
    terminate_timeout = _seconds(300)

    stopped_reason = models.CharField(
        max_length=500,
        blank=True,
        help_text="Configuration error that stops launches until the settings are changed.",
    )
    stopped_at = models.DateTimeField(null=True, blank=True)
    backoff_until = models.DateTimeField(null=True, blank=True)
    backoff_since = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    backoff_announced_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When LCM announced that the pool backs off; empty after it announced the end.",
    )
    maximum_announced_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When LCM announced that the pool is at its maximum; empty after it announced the end.",
    )
    refused_offerings = models.JSONField(
        default=dict,
        blank=True,
        help_text="Refused offerings, with the time until which they are not requested.",
    )
    failed_workers = models.JSONField(
        default=dict,
        blank=True,
        help_text="Listed workers that did not respond, with the time; others are tried first.",
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="pool_min_within_max",
                condition=Q(min_slots__lte=F("max_slots")),
                violation_error_message=_("The minimum cannot exceed the maximum number of slots."),
            ),
            models.CheckConstraint(
                name="pool_warm_within_max",
                condition=Q(warm_slots__lte=F("max_slots")),
                violation_error_message=_("Warm slots cannot exceed the maximum number of slots."),
            ),
            models.CheckConstraint(
                name="pool_ports_in_order",
                condition=Q(first_port__gte=1024, last_port__lte=65_535, first_port__lte=F("last_port")),
                violation_error_message=_(
                    "Ports must be between 1024 and 65535, and the first below the last."
                ),
            ),
            models.CheckConstraint(
                name="pool_leases_positive", condition=Q(max_leases__gte=1, max_slots__gte=1)
            ),
            models.CheckConstraint(
                name="pool_capacity_in_range",
                condition=REQUIRED_POSITIVE,
                violation_error_message=_("A slot needs CPU and memory."),
            ),
            models.CheckConstraint(
                name="pool_spot_policy_known", condition=Q(spot_policy__in=SpotPolicy.values)
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def floor(self) -> int:
        """Return the number of slots to keep without demand."""
        return max(self.min_slots, self.warm_slots)

    @property
    def port_count(self) -> int:
        """Return the number of ports per slot that sessions can use."""
        return self.last_port - self.first_port + 1

    def timeout_of(self, state: str) -> timedelta | None:
        """Return how long a slot may stay in a state; None for states without a time limit."""
        seconds = {
            "LAUNCHING": self.launch_timeout,
            "BOOTING": self.boot_timeout,
            "BINDING": self.binding_timeout,
            "DRAINING": self.drain_timeout,
            "TERMINATING": self.terminate_timeout,
        }.get(state)
        return timedelta(seconds=seconds) if seconds else None
