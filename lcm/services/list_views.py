"""Saved views of lists, and each person's columns, density and default view."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, NotFound
from lcm.models import SavedView, User
from lcm.selectors.list_views import views_changeable_by, views_for
from lcm.services.changelog import log_change
from lcm.services.validation import clean_model

# Views of one list that a person can save.
MAX_VIEWS = 50
# Lists for which LCM keeps the settings of a person.
MAX_LISTS = 100


def set_list_layout(*, user: User, list_name: str, columns: Sequence[str], density: str) -> None:
    """Save the columns and density with which a person sees a list."""
    layout = {"columns": list(columns), "density": density}
    clean_model(SavedView(owner=user, list_name=list_name, name="layout", **layout), exclude={"name"})
    _save_settings(user, list_name, **layout)


def set_default_view(*, user: User, view: SavedView, is_default: bool) -> None:
    """Set or unset the view with which a list opens for a person."""
    if not views_for(user).filter(pk=view.pk).exists():
        raise _gone(view)
    _save_settings(user, view.list_name, default_view=str(view.pk) if is_default else "")


def create_view(*, owner: User, now: datetime, **values: Any) -> SavedView:
    """Save a view; `values` are the fields of a SavedView."""
    view = SavedView(owner=owner, created_at=now, **values)
    if SavedView.objects.filter(owner=owner, list_name=view.list_name).count() >= MAX_VIEWS:
        raise InvalidInput(
            {"name": _("You have %(count)s views of this list. Delete one first.") % {"count": MAX_VIEWS}}
        )
    with transaction.atomic():
        clean_model(view)
        view.save(force_insert=True)
        _log(view, by=owner, what="created", is_public=view.shared, now=now)
    return view


def update_view(*, view: SavedView, by: User, now: datetime, **values: Any) -> SavedView:
    """Change a view of the person, or as an Admin a shared one."""
    with transaction.atomic():
        stored = views_changeable_by(by).select_for_update(of=("self",)).filter(pk=view.pk).first()
        if stored is None:
            raise _gone(view)
        was_shared = stored.shared
        for name, value in values.items():
            setattr(stored, name, value)
        clean_model(stored)
        stored.save()
        _log(stored, by=by, what="changed", is_public=was_shared or stored.shared, now=now)
    return stored


def delete_view(*, view: SavedView, by: User, now: datetime) -> None:
    """Delete a view of the person, or as an Admin a shared one."""
    with transaction.atomic():
        stored = views_changeable_by(by).select_for_update(of=("self",)).filter(pk=view.pk).first()
        if stored is None:
            raise _gone(view)
        _log(stored, by=by, what="deleted", is_public=stored.shared, now=now)
        stored.delete()


def _save_settings(user: User, list_name: str, **values: Any) -> None:
    """Save settings of one list; settings of other lists do not change."""
    with transaction.atomic():
        stored = User.objects.select_for_update().get(pk=user.pk).list_settings
        if list_name not in stored and len(stored) >= MAX_LISTS:
            raise InvalidInput({"list_name": _("You have settings for too many lists.")})
        stored[list_name] = {**stored.get(list_name, {}), **values}
        User.objects.filter(pk=user.pk).update(list_settings=stored)
    user.list_settings = stored


def _log(view: SavedView, *, by: User, what: str, is_public: bool, now: datetime) -> None:
    """Log a change of a view that is or was shared; the query of a private view stays private."""
    if is_public:
        message = f"view “{view}” of {view.list_name} {what}"
        after = {"shared": view.shared, "query": view.query if view.shared else ""}
        log_change(view, actor=Actor.person(by), event=f"view.{what}", message=message, after=after, now=now)


def _gone(view: SavedView) -> NotFound:
    return NotFound(_("The view %(name)s was deleted or is no longer shared.") % {"name": view})
