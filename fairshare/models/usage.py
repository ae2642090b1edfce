"""Usage: allocations, records per time slice, and daily buckets.

Times are milliseconds since 1970 and amounts are integers (`fairshare.arithmetic.units`), so that Python and
the database compute exactly. Rows refer to people, projects and kernels by ID only: the ledger outlives them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import F, Q

from fairshare.arithmetic.slices import to_moment
from fairshare.arithmetic.units import hours
from fairshare.models.levels import ENGLISH_NAMES, Level
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models.resources import NOT_NEGATIVE


def _amount(text: str) -> models.BigIntegerField[Any, Any]:
    return models.BigIntegerField(help_text=text)


class UsageAmounts(models.Model):
    """An amount for each resource."""

    cpu_cores = _amount("CPU")
    memory_gb = _amount("Memory")
    storage_gb = _amount("Storage")
    gpu = _amount("GPUs")

    class Meta:
        abstract = True

    @property
    def hours(self) -> dict[str, float]:
        """Return core-hours, GB-hours and GPU-hours."""
        return {name: hours(getattr(self, name)) for name in RESOURCE_NAMES}


class Allocation(UsageAmounts):
    """Resources that one kernel held in one attempt: start, end, and how far usage is recorded.

    Written in the transaction of the session's transition; amounts are in hundredths.
    """

    id = models.BigAutoField(primary_key=True)
    kernel_id = models.UUIDField()
    attempt = models.PositiveSmallIntegerField()
    session_id = models.UUIDField()
    user_id = models.UUIDField()
    project_id = models.UUIDField()
    domain_id = models.UUIDField()
    pool = models.CharField(max_length=63)
    started_ms = models.BigIntegerField()
    ended_ms = models.BigIntegerField(null=True)
    cursor_ms = models.BigIntegerField(help_text="Recorded up to here.")
    settled = models.BooleanField(default=False, help_text="Ended and completely recorded.")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["kernel_id", "attempt"], name="allocation_of_attempt"),
            models.CheckConstraint(
                name="allocation_in_order",
                condition=Q(cursor_ms__gte=F("started_ms"))
                & (Q(ended_ms=None) | Q(ended_ms__gte=F("cursor_ms"))),
            ),
            models.CheckConstraint(
                name="allocation_settled_at_its_end",
                condition=Q(settled=False) | Q(ended_ms__isnull=False, ended_ms=F("cursor_ms")),
            ),
            models.CheckConstraint(
                name="allocation_amounts_in_range",
                condition=NOT_NEGATIVE,
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(settled=False), name="allocation_unsettled"),
        ]

    def __str__(self) -> str:
        return f"allocation {self.pk}"

    @property
    def started_at(self) -> datetime:
        return to_moment(self.started_ms)

    @property
    def ended_at(self) -> datetime | None:
        return None if self.ended_ms is None else to_moment(self.ended_ms)

    @property
    def recorded_until(self) -> datetime:
        return to_moment(self.cursor_ms)


class UsageBatch(models.Model):
    """Records written in one transaction; aggregated together and removed together."""

    id = models.BigAutoField(primary_key=True)
    recorded_at = models.DateTimeField()
    record_count = models.PositiveIntegerField(default=0)
    first_day = models.DateField(null=True)
    last_day = models.DateField(null=True)
    aggregated_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "usage batches"
        constraints = [
            models.CheckConstraint(
                name="batch_removed_after_it_was_aggregated",
                condition=Q(removed_at=None) | Q(aggregated_at__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(aggregated_at=None), name="batch_not_aggregated"),
            models.Index(fields=["recorded_at"], condition=Q(removed_at=None), name="batch_kept"),
        ]

    def __str__(self) -> str:
        return f"batch {self.pk}"


class UsageRecord(UsageAmounts):
    """Usage of an allocation in one slice: amount × time for each resource."""

    id = models.BigAutoField(primary_key=True)
    # No database constraints: every insert would check both references, and only retention deletes them.
    allocation = models.ForeignKey(
        Allocation, on_delete=models.PROTECT, related_name="records", db_index=False, db_constraint=False
    )
    batch = models.ForeignKey(
        UsageBatch, on_delete=models.PROTECT, related_name="records", db_constraint=False
    )
    period_start = models.BigIntegerField(help_text="Milliseconds since 1970, UTC.")
    period_ms = models.PositiveIntegerField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["allocation", "period_start"], name="record_of_slice"),
            models.CheckConstraint(
                name="record_within_a_slice", condition=Q(period_ms__gte=1, period_ms__lte=300_000)
            ),
        ]

    def __str__(self) -> str:
        return f"record {self.pk}"

    @property
    def starts_at(self) -> datetime:
        return to_moment(self.period_start)


class UsageBucket(UsageAmounts):
    """Usage of one UTC day in one pool, by a person in a project, a project or a domain."""

    id = models.BigAutoField(primary_key=True)
    day = models.DateField()
    pool = models.CharField(max_length=63)
    level = models.CharField(max_length=7, choices=Level)
    subject_id = models.UUIDField(help_text="The person, project or domain.")
    parent_id = models.UUIDField(help_text="The project of a person, the domain of a project.")

    class Meta:
        ordering = ["-day", "id"]
        verbose_name = "usage bucket"
        constraints = [
            models.UniqueConstraint(
                fields=["pool", "level", "day", "subject_id", "parent_id"], name="bucket_of_day"
            ),
            models.CheckConstraint(name="bucket_level_known", condition=Q(level__in=Level.values)),
        ]
        indexes = [
            models.Index(fields=["day", "id"], name="bucket_newest"),
            # Most buckets belong to people: a partial index finds the others, and one person's own, without
            # them.
            models.Index(
                fields=["day"],
                name="bucket_of_groups",
                condition=Q(level=Level.DOMAIN) | Q(level=Level.PROJECT),
            ),
            models.Index(fields=["subject_id", "day"], name="bucket_of_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.day} {ENGLISH_NAMES[self.level]} {self.subject_id}"


class UsageCheck(models.Model):
    """One comparison of records with buckets."""

    id = models.BigAutoField(primary_key=True)
    checked_at = models.DateTimeField()
    first_day = models.DateField()
    last_day = models.DateField()
    record_count = models.PositiveBigIntegerField()
    difference_count = models.PositiveIntegerField()
    differences = models.JSONField(default=list, help_text="The first differences.")

    class Meta:
        ordering = ["-checked_at", "-id"]

    def __str__(self) -> str:
        return f"check of {self.checked_at:%Y-%m-%d %H:%M}"
