"""Abstract base models."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

# Pattern of an id. It has no groups, because URL patterns include it.
ID_PATTERN = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


class IdModel(models.Model):
    """A model with a random UUID as its key."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)

    class Meta:
        abstract = True

    @property
    def short_id(self) -> str:
        """Return the first characters of the id, which people use to refer to the object."""
        return self.id.hex[:6]


class DatedModel(IdModel):
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
