"""What every model of ours has."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone

# The text of an id. Without groups: addresses are made of it.
ID_PATTERN = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


class IdModel(models.Model):
    """An id that says nothing and can be made anywhere."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)

    class Meta:
        abstract = True

    @property
    def short_id(self) -> str:
        """The first characters of the id: enough for people to tell two apart."""
        return self.id.hex[:6]


class DatedModel(IdModel):
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
