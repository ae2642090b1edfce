"""Saved views of lists."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from lcm.models.base import DatedModel
from lcm.models.people import User

MAX_COLUMNS, MAX_KEY, MAX_QUERY = 100, 60, 2000


class Density(models.TextChoices):
    COMFORTABLE = "comfortable", _("Comfortable")
    COMPACT = "compact", _("Compact")


known_form = RegexValidator(r"^[a-z][a-z-]*\Z", _("This is not the name of a list."))


def column_keys(value: object) -> None:
    """Accept a list of column keys."""
    if not isinstance(value, list) or len(value) > MAX_COLUMNS:
        raise ValidationError(_("Enter a list of columns."))
    if any(not isinstance(key, str) or len(key) > MAX_KEY or "\0" in key for key in value):
        raise ValidationError(_("Enter the keys of columns."))


class SavedView(DatedModel):
    """A named view of a list: filters, order, page size, columns and density."""

    # The export name of the list.
    list_name = models.CharField(max_length=50, validators=[known_form])
    name = models.CharField(max_length=60)
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="saved_views", db_index=False)
    shared = models.BooleanField(default=False, help_text="Everyone can use it.")
    query = models.CharField(max_length=MAX_QUERY, blank=True)
    # Keys of columns; empty: the default columns.
    columns = models.JSONField(default=list, blank=True, validators=[column_keys])
    density = models.CharField(max_length=11, choices=Density, default=Density.COMFORTABLE)

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("view")
        verbose_name_plural = _("views")
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "list_name", "name"],
                name="saved_view_name_of_owner",
                violation_error_message=_("You already have a view with this name."),
            ),
        ]
        indexes = [
            models.Index(fields=["list_name"], condition=models.Q(shared=True), name="saved_view_shared")
        ]

    def __str__(self) -> str:
        return self.name
