"""Change feed that controllers watch: the sessions and slots that changed, in order and without gaps."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class FeedKind(models.TextChoices):
    SESSION = "session", _("Session")
    SLOT = "slot", _("Slot")


class FeedEntry(models.Model):
    """A change of a session or slot. Written in the transaction of the change, numbered after its commit."""

    id = models.BigAutoField(primary_key=True)
    revision = models.BigIntegerField(null=True)
    kind = models.CharField(max_length=7, choices=FeedKind)
    object_id = models.UUIDField()
    pool = models.CharField(max_length=63)
    at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        verbose_name = _("feed entry")
        verbose_name_plural = _("feed entries")
        constraints = [
            models.CheckConstraint(name="feed_kind_known", condition=Q(kind__in=FeedKind.values)),
            models.UniqueConstraint(
                fields=["revision"], condition=Q(revision__isnull=False), name="feed_revision_once"
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(revision=None), name="feed_unnumbered"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id.hex[:6]}"


class FeedHead(models.Model):
    """The only row: newest revision and newest removed revision. Assigning revisions locks it."""

    ONLY = 1

    id = models.PositiveSmallIntegerField(primary_key=True, default=ONLY)
    revision = models.BigIntegerField(default=0)
    pruned_revision = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = _("feed head")
        constraints = [
            models.CheckConstraint(name="feed_head_once", condition=Q(id=1)),
            models.CheckConstraint(
                name="feed_pruned_up_to_revision", condition=Q(pruned_revision__lte=models.F("revision"))
            ),
        ]

    def __str__(self) -> str:
        return f"revision {self.revision}"
