"""The list page: search, filters, sorting, paging, selection, bulk actions and export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy
from django.views.decorators.http import require_GET
from django_filters import FilterSet

from lcm.domain.errors import InvalidInput
from lcm.domain.roles import Role, role_of
from lcm.extensions import Extension
from lcm.models import Density
from lcm.web.access import View, htmx_of, role_required
from lcm.web.added_filters import with_added_filters
from lcm.web.export import export
from lcm.web.filter_menus import filter_chips, filter_menus, hidden_inputs
from lcm.web.list_columns import Column, with_added
from lcm.web.list_layout import LAYOUT_NAMES, Layout, layout_of, view_address
from lcm.web.pagination import OrderedKeys, RowPage, capped_count, page_of, page_of_keys
from lcm.web.wording import Plural

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

PAGE_SIZES = (25, 50, 100, 200)
ALL_MATCHES = Plural(ngettext_lazy("All %(count)s match", "All %(count)s matches"))


@dataclass(frozen=True)
class BulkAction:
    """The button of a bulk action and the URL of its confirmation page."""

    label: StrOrPromise
    url_name: str
    role: Role
    danger: bool = False


@dataclass(frozen=True)
class PageAction:
    label: StrOrPromise
    url_name: str
    role: Role
    icon: str
    primary: bool = False
    args: Sequence[Any] = ()
    # Fragment of the target URL.
    anchor: str = ""

    @property
    def url(self) -> str:
        return reverse(self.url_name, args=self.args) + (f"#{self.anchor}" if self.anchor else "")


@dataclass(frozen=True)
class ListPage:
    """Configuration of one list."""

    title: StrOrPromise
    # Start of the file name of an export.
    export_name: str
    # The number of rows, for example “3 sessions”.
    counted: Plural
    search_label: StrOrPromise
    # Titles of an empty list: with filters, and without filters.
    no_match_title: StrOrPromise
    empty_title: StrOrPromise
    rows: Callable[[], QuerySet[Any]]
    filterset: type[FilterSet]
    columns: Sequence[Column]
    default_sort: str
    search_hint: StrOrPromise
    icon: str
    empty_hint: StrOrPromise
    # Describes the default order if no column header shows it, for example “review priority”.
    sorted_by: StrOrPromise = ""
    # Explains the figures in the table, in one sentence.
    note: StrOrPromise = ""
    lead: Callable[[], str] = lambda: ""
    actions: Sequence[PageAction] = ()
    bulk: Sequence[BulkAction] = ()
    # Template with the cells of the columns as partials.
    cells: str = ""
    # Start of the name of an export's file, if it is not the export name.
    file_name: str = ""
    # Columns of an export, if it has more than the page.
    export_columns: Sequence[Column] = ()
    # Returns the keys of the rows in an order that no column has.
    ordered_keys: Callable[[QuerySet[Any]], OrderedKeys] | None = None
    counted_apart: Callable[[int], str] = str
    # Adds related data to the rows of one page, in a query or two.
    enrich_rows: Callable[[Sequence[Any]], None] | None = None
    # Lowest role that sees the cell with row actions, and the template of its content.
    row_actions: Role | None = None
    actions_cell: str = ""
    template: str = "list.html"
    # Reloads every few seconds unless rows are selected.
    live: bool = False
    default_size: int = PAGE_SIZES[0]

    def page_of(self, queryset: QuerySet[Any], *, sort: str, size: int, cursor: str = "") -> RowPage[Any]:
        if self.ordered_keys is not None:
            ordered = self.ordered_keys(queryset)
            found: RowPage[Any] = page_of_keys(queryset, ordered.keys, size=size, cursor=cursor)
            found = replace(found, apart=ordered.apart)
            ordered.enrich(found.rows)
        else:
            found = page_of(queryset, sort=sort, size=size, cursor=cursor)
        if self.enrich_rows is not None:
            self.enrich_rows(found.rows)
        return found


@dataclass(frozen=True)
class ListAddition:
    """What another app adds to the list with this export name; empty fields keep what the list has."""

    to: str
    columns: Sequence[Column] = ()
    # Columns of exports, if they differ from the columns of the page.
    export_columns: Sequence[Column] = ()
    # Names of columns that the page shows only if a person chooses them; exports have them.
    hidden: Sequence[str] = ()
    bulk: Sequence[BulkAction] = ()
    # Narrows the rows or adds related data, in one query; `enrich_rows` adds data to the rows of one page.
    rows: Callable[[QuerySet[Any]], QuerySet[Any]] | None = None
    enrich_rows: Callable[[Sequence[Any]], None] | None = None
    default_sort: str = ""
    sorted_by: StrOrPromise = ""
    note: StrOrPromise = ""
    lead: Callable[[], str] | None = None

    def add_to(self, page: ListPage) -> ListPage:
        return replace(
            page,
            columns=with_added(page.columns, self.columns, self.hidden),
            export_columns=with_added(
                page.export_columns or page.columns, self.export_columns or self.columns
            ),
            bulk=[*page.bulk, *self.bulk],
            rows=self._rows(page.rows),
            enrich_rows=self.enrich_rows or page.enrich_rows,
            default_sort=self.default_sort or page.default_sort,
            sorted_by=self.sorted_by or page.sorted_by,
            note=self.note or page.note,
            lead=self.lead or page.lead,
        )

    def _rows(self, rows: Callable[[], QuerySet[Any]]) -> Callable[[], QuerySet[Any]]:
        narrow = self.rows
        return rows if narrow is None else lambda: narrow(rows())


def with_additions(page: ListPage) -> ListPage:
    """Return a list with what other apps add to it."""
    for addition in Extension.installed().lists:
        if addition.to == page.export_name:
            page = addition.add_to(page)
    return replace(page, filterset=with_added_filters(page.filterset))


def list_page(
    request: HttpRequest, page: ListPage, *, crumbs: Sequence[tuple[StrOrPromise, StrOrPromise]] = ()
) -> HttpResponseBase:
    """Return a list as a full page, as its results for htmx, or as an export."""
    page = with_additions(page)
    layout = layout_of(request, page)
    if layout.default and not request.GET:
        return redirect(view_address(request.path, layout.default))
    filterset = page.filterset(request.GET, queryset=page.rows())
    filtered = filterset.qs if filterset.is_valid() else page.rows().none()
    sort = _sort(request, page)
    file_format = request.GET.get("format", "")
    if file_format in ("csv", "json") and filterset.is_valid():
        return export(page, filtered, sort=sort, file_format=file_format)
    size = _size(request)
    rows, problem = _rows(request, page, filtered, sort=sort, size=size)
    total, more = capped_count(filtered) if rows.total is None else (rows.total, False)
    role = role_of(request.user)
    menus = filter_menus(filterset)
    actions = [action for action in page.actions if role >= action.role]
    htmx = htmx_of(request)
    only_results = htmx and not htmx.boosted and not htmx.history_restore_request
    context = {
        "page": page,
        "now": timezone.now(),
        "filterset": filterset,
        "filter_menus": menus,
        "zone": timezone.get_current_timezone_name(),
        "chips": filter_chips(request, filterset),
        "hidden_inputs": hidden_inputs(request, menus),
        "layout": layout,
        "shown_columns": layout.columns,
        "columns": [_head(request, column, sort) for column in layout.columns],
        "densities": Density,
        "kept_inputs": [(name, request.GET[name]) for name in LAYOUT_NAMES if name in request.GET],
        "cleared_query": _cleared_query(request, layout),
        "rows": rows,
        "total": total,
        "counted": _counted(page, rows, total, more),
        "all_matches": ALL_MATCHES.text(total, is_capped=more),
        "more": more,
        "problem": problem,
        "sort": sort,
        "sortable": any(column.sort for column in layout.columns),
        "unsorted_query": _query(request, drop=("cursor", "format", "sort")),
        "size": size,
        "sizes": PAGE_SIZES,
        "query": _query(request, drop=("cursor", "format")),
        "next_query": _query(request, set_to={"cursor": rows.next}) if rows.next else "",
        "previous_query": _query(request, set_to={"cursor": rows.previous}) if rows.previous else "",
        "is_filtered": any(request.GET.get(name) for name in filterset.filters),
        "page_actions": actions,
        "first_action": next((action for action in actions if action.primary), None),
        "has_row_actions": page.row_actions is not None and role >= page.row_actions,
        "bulk": [action for action in page.bulk if role >= action.role],
        "crumbs": crumbs or [(page.title, "")],
        "partial": only_results,
        "is_poll": htmx.trigger == "poll",
    }
    return render(request, "list.html#results" if only_results else page.template, context)


def _counted(page: ListPage, rows: RowPage[Any], total: int, more: bool) -> str:
    """Format the number of rows: “3 reservations in the queue · 1 booked”."""
    text = page.counted.text(total - rows.apart, is_capped=more)
    return f"{text} · {page.counted_apart(rows.apart)}" if rows.apart else text


def list_view(
    page: ListPage, role: Role = Role.VIEWER, *, crumbs: Sequence[tuple[StrOrPromise, StrOrPromise]] = ()
) -> View:
    """Return the view of a list, for people with a role."""
    return require_GET(role_required(role)(partial(list_page, page=page, crumbs=crumbs)))


def selected_rows(request: HttpRequest, page: ListPage) -> tuple[QuerySet[Any], str]:
    """Return the rows of a bulk action and how they were selected: `ticked`, or `all` rows that match."""
    if request.POST.get("all"):
        filterset = page.filterset(QueryDict(request.POST.get("filter_query", "")), queryset=page.rows())
        if not filterset.is_valid():
            raise InvalidInput(
                {"__all__": _("The filters of this selection are no longer valid. Select the rows again.")}
            )
        return filterset.qs, "all"
    keys = request.POST.getlist("pk")
    known = page.rows().model._meta.pk
    try:
        return page.rows().filter(pk__in=[known.to_python(key) for key in keys]), "ticked"
    except Exception as error:
        raise InvalidInput({"pk": _("The selection is not valid. Select the rows again.")}) from error


def _rows(
    request: HttpRequest, page: ListPage, queryset: QuerySet[Any], *, sort: str, size: int
) -> tuple[RowPage[Any], str]:
    try:
        return page.page_of(queryset, sort=sort, size=size, cursor=request.GET.get("cursor", "")), ""
    except InvalidInput as error:
        return page.page_of(queryset, sort=sort, size=size), error.message


def _sort(request: HttpRequest, page: ListPage) -> str:
    requested = request.GET.get("sort", "")
    columns = (*page.columns, *page.export_columns)
    known = {column.sort.removeprefix("-") for column in columns if column.sort}
    return requested if requested.removeprefix("-") in known else page.default_sort


def _size(request: HttpRequest) -> int:
    requested = request.GET.get("size", "")
    return next((size for size in PAGE_SIZES if str(size) == requested), PAGE_SIZES[0])


def _query(request: HttpRequest, *, drop: Sequence[str] = (), set_to: dict[str, Any] | None = None) -> str:
    query = request.GET.copy()
    for name in drop:
        query.pop(name, None)
    for name, value in (set_to or {}).items():
        query[name] = value
    return query.urlencode()


def _cleared_query(request: HttpRequest, layout: Layout) -> str:
    """Return the query without filters; without any parameter the list would open with the default view."""
    kept = QueryDict(mutable=True)
    for name in ("sort", "size", *LAYOUT_NAMES):
        if name in request.GET:
            kept[name] = request.GET[name]
    if layout.default:
        kept.setdefault("view", "")
    return kept.urlencode()


def _head(request: HttpRequest, column: Column, sort: str) -> dict[str, Any]:
    """Return the context of a column header; the header of the current sort column reverses the order."""
    name = column.sort.removeprefix("-")
    is_current = bool(name) and sort.removeprefix("-") == name
    if is_current:
        next_sort = name if sort.startswith("-") else f"-{name}"
    else:
        next_sort = column.sort
    return {
        "label": column.label,
        "numeric": column.numeric,
        "query": _query(request, drop=("cursor",), set_to={"sort": next_sort}) if name else "",
        "direction": ("descending" if sort.startswith("-") else "ascending") if is_current else "",
    }
