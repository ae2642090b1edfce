"""Identity of this LCM installation; several may share a provider account."""

from __future__ import annotations

from uuid import uuid4

from django.db import models
from django.db.models import Q


def new_key() -> str:
    return uuid4().hex


class Installation(models.Model):
    """A single row: the id that this installation's instances are tagged with."""

    ONLY = 1

    id = models.PositiveSmallIntegerField(primary_key=True, default=ONLY)
    key = models.CharField(max_length=32, default=new_key)

    class Meta:
        constraints = [models.CheckConstraint(name="installation_once", condition=Q(id=1))]

    def __str__(self) -> str:
        return self.key
