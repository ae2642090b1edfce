"""Saved views of lists, and each person's columns, density and default view."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from lcm.domain.roles import Role, role_of
from lcm.models import Density, SavedView, User


@dataclass(frozen=True)
class ListSettings:
    """How a person sees a list; the default view is an id, and may have been deleted."""

    columns: tuple[str, ...] = ()
    density: str = Density.COMFORTABLE.value
    default_view: str = ""


def settings_of(user: User, list_name: str) -> ListSettings:
    return ListSettings(**user.list_settings.get(list_name, {}))


def views_for(user: User) -> QuerySet[SavedView]:
    """Return the person's own views and the shared ones."""
    return SavedView.objects.select_related("owner").filter(Q(owner=user) | Q(shared=True))


def views_changeable_by(user: User) -> QuerySet[SavedView]:
    """Return the person's own views; for Admins also the shared ones."""
    return views_for(user) if role_of(user) >= Role.ADMIN else SavedView.objects.filter(owner=user)
