"""Columns and density of a list: from the URL, else from the saved view, else from the person's settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict

from lcm.models import Density, SavedView, User
from lcm.selectors.list_views import ListSettings, settings_of, views_changeable_by, views_for
from lcm.web.list_columns import Column

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from lcm.web.list_page import ListPage

# Parameters of a list that are no filters, and of these the ones that a view does not contain.
LAYOUT_NAMES = ("view", "columns", "density")
NOT_SAVED = ("cursor", "format", *LAYOUT_NAMES)


@dataclass(frozen=True)
class ColumnChoice:
    """A column in the menu of columns; a list without its title column has no links."""

    key: str
    label: StrOrPromise
    is_shown: bool
    is_fixed: bool


@dataclass(frozen=True)
class Layout:
    """The columns and density of a list for a person, and the views to choose from."""

    page: ListPage
    columns: list[Column]
    density: str
    settings: ListSettings
    views: list[SavedView]
    view: SavedView | None
    is_changed: bool
    can_change_view: bool

    @property
    def is_compact(self) -> bool:
        return self.density == Density.COMPACT

    @property
    def is_default(self) -> bool:
        return self.view is not None and self.view == self.default

    @property
    def default(self) -> SavedView | None:
        return next((each for each in self.views if str(each.pk) == self.settings.default_view), None)

    @property
    def choices(self) -> list[ColumnChoice]:
        shown = {each.key for each in self.columns}
        fixed = _fixed_keys(self.page.columns)
        return [
            ColumnChoice(each.key, each.label, each.key in shown, each.key in fixed)
            for each in self.page.columns
        ]


def layout_of(request: HttpRequest, page: ListPage) -> Layout:
    """Return the layout of a list for the person, and the views; needs one query."""
    assert isinstance(request.user, User)
    views = list(views_for(request.user).filter(list_name=page.export_name))
    settings = settings_of(request.user, page.export_name)
    view = next((each for each in views if str(each.pk) == request.GET.get("view")), None)
    keys: Sequence[str] = view.columns if view else settings.columns
    density = view.density if view else settings.density
    if "columns" in request.GET:
        keys = request.GET["columns"].split(",")
    if request.GET.get("density") in Density.values:
        density = request.GET["density"]
    columns = shown_columns(page.columns, keys)
    return Layout(
        page=page,
        columns=columns,
        density=density,
        settings=settings,
        views=views,
        view=view,
        is_changed=view is not None and _is_changed(request, page, view, columns, density),
        can_change_view=view is not None and _can_change(request.user, view),
    )


def shown_columns(columns: Sequence[Column], keys: Sequence[str]) -> list[Column]:
    """Return the chosen columns in the order of the list; without a known key the default ones."""
    known = {each.key for each in columns}
    if not known.intersection(keys):
        return [each for each in columns if not each.optional]
    wanted = _fixed_keys(columns).union(keys)
    return [each for each in columns if each.key in wanted]


def view_address(path: str, view: SavedView) -> str:
    """Return the address of a list with a view."""
    query = QueryDict(view.query, mutable=True)
    query["view"] = str(view.pk)
    return f"{path}?{query.urlencode()}"


def saved_query(query: QueryDict) -> str:
    """Return the part of a query that a view contains: filters, search, order and page size."""
    kept = [(name, value) for name, values in query.lists() if name not in NOT_SAVED for value in values]
    return urlencode(sorted(pair for pair in kept if pair[1]))


def _fixed_keys(columns: Sequence[Column]) -> set[str]:
    title = next((each for each in columns if "card-title" in each.css), columns[0])
    return {title.key}


def _is_changed(
    request: HttpRequest, page: ListPage, view: SavedView, columns: list[Column], density: str
) -> bool:
    defaults = {"sort": page.default_sort, "size": str(page.default_size)}

    def query_of(query: QueryDict) -> str:
        found = query.copy()
        for name, value in defaults.items():
            if found.get(name) == value:
                del found[name]
        return saved_query(found)

    return (
        query_of(request.GET) != query_of(QueryDict(view.query))
        or columns != shown_columns(page.columns, view.columns)
        or density != view.density
    )


def _can_change(user: User, view: SavedView) -> bool:
    return view.owner_id == user.pk or views_changeable_by(user).filter(pk=view.pk).exists()
