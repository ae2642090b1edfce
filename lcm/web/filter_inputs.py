"""Filters with a text input: a time or a user name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import django_filters as df
from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters.fields import IsoDateTimeField

from lcm.models import User
from lcm.web.zones import with_zone


class TypedInputMixin:
    """A filter with an input in the menu of the filter that `menu` names."""

    input_type = "text"

    def __init__(self, *, menu: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.menu = menu

    def input_value(self, value: Any) -> str:
        """Return the text that the input shows for a value."""
        return str(value)

    def display_text(self, value: Any) -> str:
        return self.input_value(value)


class MomentField(IsoDateTimeField):
    """A time in UTC; rejects times that overflow the calendar in UTC or in the current time zone."""

    def clean(self, value: Any) -> datetime | None:
        moment: datetime | None = super().clean(value)
        try:
            return timezone.localtime(moment).astimezone(UTC) if moment else None
        except OverflowError as error:
            raise ValidationError(_("This time is out of range.")) from error


class MomentFilter(TypedInputMixin, df.IsoDateTimeFilter):
    field_class = MomentField
    input_type = "datetime-local"

    def input_value(self, value: datetime) -> str:
        return f"{timezone.localtime(value):%Y-%m-%dT%H:%M}"

    def display_text(self, value: datetime) -> str:
        local = timezone.localtime(value)
        return with_zone(f"{local:%Y-%m-%d %H:%M}", local)


class UsernameField(forms.CharField):
    """A person by user name, including deactivated people."""

    def clean(self, value: Any) -> User | None:
        name = super().clean(value)
        if not name:
            return None
        user = User.objects.filter(username__iexact=name).order_by("username").first()
        if user is None:
            raise ValidationError(_("There is no “%(name)s”.") % {"name": name})
        return user


class UsernameFilter(TypedInputMixin, df.CharFilter):
    field_class = UsernameField
