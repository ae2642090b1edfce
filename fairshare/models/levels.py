"""Levels of the tree, from the top."""

from __future__ import annotations

from uuid import UUID

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

# Parent of every domain.
ROOT = UUID(int=0)


class Level(TextChoices):
    DOMAIN = "domain", _("Domain")
    PROJECT = "project", _("Project")
    USER = "user", _("Person")


LEVELS = tuple(Level)
# Names in stored texts, which stay English.
ENGLISH_NAMES = {Level.DOMAIN.value: "domain", Level.PROJECT.value: "project", Level.USER.value: "person"}
