"""Levels of the tree, from the top."""

from __future__ import annotations

from uuid import UUID

from django.db.models import TextChoices

# Parent of every domain.
ROOT = UUID(int=0)


class Level(TextChoices):
    DOMAIN = "domain", "Domain"
    PROJECT = "project", "Project"
    USER = "user", "Person"


LEVELS = tuple(Level)
