"""The list page: search, filters, sorting, paging, selection, bulk actions and export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy
from django_filters import ChoiceFilter, FilterSet, MultipleChoiceFilter

from lcm.domain.errors import InvalidInput
from lcm.domain.roles import Role, role_of
from lcm.web.export import export
from lcm.web.filter_inputs import TypedInputMixin
from lcm.web.filters import ObjectFilter
from lcm.web.pagination import RowPage, capped_count, page_of, page_of_keys
from lcm.web.wording import Plural

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

PAGE_SIZES = (25, 50, 100, 200)
ALL_MATCHES = Plural(ngettext_lazy("All %(count)s match", "All %(count)s matches"))
_NOT_FILTERS = ("cursor", "sort", "size", "format")


@dataclass(frozen=True)
class Column:
    """A table column with its header, and its value in an export."""

    label: StrOrPromise
    value: Callable[[Any], Any]
    sort: str = ""
    numeric: bool = False
    export_label: StrOrPromise = ""


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
    # Titles without rows: because of the filters, and without filters.
    no_match_title: StrOrPromise
    empty_title: StrOrPromise
    rows: Callable[[], QuerySet[Any]]
    filterset: type[FilterSet]
    columns: Sequence[Column]
    row_template: str
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
    # Columns of an export, if it has more than the page.
    export_columns: Sequence[Column] = ()
    # Returns the keys of the rows in an order that no column has.
    ordered_keys: Callable[[QuerySet[Any]], Sequence[Any]] | None = None
    # Adds related data to the rows of one page, in a query or two.
    enrich_rows: Callable[[Sequence[Any]], None] | None = None
    # Lowest role that sees the cell with row actions.
    row_actions: Role | None = None
    template: str = "list.html"
    # Reloads every few seconds unless rows are selected.
    live: bool = False

    def page_of(self, queryset: QuerySet[Any], *, sort: str, size: int, cursor: str = "") -> RowPage[Any]:
        if self.ordered_keys is not None:
            keys = self.ordered_keys(queryset)
            found: RowPage[Any] = page_of_keys(queryset, keys, size=size, cursor=cursor)
        else:
            found = page_of(queryset, sort=sort, size=size, cursor=cursor)
        if self.enrich_rows is not None:
            self.enrich_rows(found.rows)
        return found


_replaced: dict[str, ListPage] = {}


def replace_list(page: ListPage, by: ListPage) -> None:
    """Replace a list by one with another app's columns; call it from `AppConfig.ready`."""
    _replaced[page.export_name] = by


def resolve_list(page: ListPage) -> ListPage:
    return _replaced.get(page.export_name, page)


def list_page(
    request: HttpRequest, page: ListPage, *, crumbs: Sequence[tuple[StrOrPromise, str]] = ()
) -> HttpResponseBase:
    """Return a list as a full page, as its results for htmx, or as an export."""
    page = resolve_list(page)
    filterset = page.filterset(request.GET, queryset=page.rows())
    filtered = filterset.qs if filterset.is_valid() else page.rows().none()
    sort = _sort(request, page)
    wanted = request.GET.get("format", "")
    if wanted in ("csv", "json") and filterset.is_valid():
        return export(page, filtered, sort=sort, wanted=wanted)
    size = _size(request)
    rows, problem = _rows(request, page, filtered, sort=sort, size=size)
    total, more = capped_count(filtered) if rows.total is None else (rows.total, False)
    role = role_of(request.user)
    menus = _menus(filterset)
    actions = [action for action in page.actions if role >= action.role]
    partial = request.htmx and not request.htmx.boosted and not request.htmx.history_restore_request  # type: ignore[attr-defined]
    context = {
        "page": page,
        "now": timezone.now(),
        "filterset": filterset,
        "filter_menus": menus,
        "chips": _chips(request, filterset),
        "kept": _kept(request, menus),
        "columns": [_head(request, column, sort) for column in page.columns],
        "rows": rows,
        "total": total,
        "counted": page.counted.text(total, is_capped=more),
        "all_matches": ALL_MATCHES.text(total, is_capped=more),
        "more": more,
        "problem": problem,
        "sort": sort,
        "sortable": any(column.sort for column in page.columns),
        "unsorted_query": _query(request, drop=("cursor", "format", "sort")),
        "size": size,
        "sizes": PAGE_SIZES,
        "query": _query(request, drop=("cursor", "format")),
        "filter_query": _query(request, drop=_NOT_FILTERS),
        "next_query": _query(request, set_to={"cursor": rows.next}) if rows.next else "",
        "previous_query": _query(request, set_to={"cursor": rows.previous}) if rows.previous else "",
        "is_filtered": any(request.GET.get(name) for name in filterset.filters),
        "page_actions": actions,
        "first_action": next((action for action in actions if action.primary), None),
        "has_row_actions": page.row_actions is not None and role >= page.row_actions,
        "bulk": [action for action in page.bulk if role >= action.role],
        "crumbs": crumbs or [(page.title, "")],
        "partial": partial,
    }
    return render(request, "list.html#results" if partial else page.template, context)


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


def _head(request: HttpRequest, column: Column, sort: str) -> dict[str, Any]:
    """Return the context of a column header; the header of the current sort column reverses the order."""
    name = column.sort.removeprefix("-")
    is_current = bool(name) and sort.removeprefix("-") == name
    if is_current:
        following = name if sort.startswith("-") else f"-{name}"
    else:
        following = column.sort
    return {
        "label": column.label,
        "numeric": column.numeric,
        "query": _query(request, drop=("cursor",), set_to={"sort": following}) if name else "",
        "direction": ("descending" if sort.startswith("-") else "ascending") if is_current else "",
    }


def _menus(filterset: FilterSet) -> list[dict[str, Any]]:
    """Return the filter menus: check boxes or a single choice, and inputs for typed values."""
    menus: dict[str, dict[str, Any]] = {}
    for name, each in filterset.filters.items():
        if isinstance(each, MultipleChoiceFilter | ChoiceFilter):
            if options := _options(filterset, name):
                several = isinstance(each, MultipleChoiceFilter)
                menus[name] = _menu(name, each, options, several=several)
        elif isinstance(each, TypedInputMixin) and each.menu:
            menu = menus.setdefault(each.menu, _menu(name, each, []))
            menu["inputs"].append(_input(filterset, name, each))
    return list(menus.values())


def _menu(name: str, each: Any, options: Sequence[Any], *, several: bool = False) -> dict[str, Any]:
    return {"name": name, "label": each.label, "options": options, "several": several, "inputs": []}


def _options(filterset: FilterSet, name: str) -> list[tuple[Any, str, bool]]:
    chosen = {str(value) for value in filterset.data.getlist(name)}
    choices = filterset.form[name].field.choices
    return [(value, label, str(value) in chosen) for value, label in choices if value != ""]


def _input(filterset: FilterSet, name: str, each: TypedInputMixin) -> dict[str, str]:
    """Return the context of an input; a value that cannot be parsed stays as typed."""
    value = filterset.form.cleaned_data.get(name) if filterset.form.is_valid() else None
    typed = each.input_value(value) if value else filterset.data.get(name, "")
    return {"name": name, "label": each.label, "type": each.input_type, "value": typed}  # type: ignore[attr-defined]


def _kept(request: HttpRequest, menus: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return filters without an input, which only links set, so that the form keeps them."""
    shown = {menu["name"] for menu in menus} | {"q", "cursor", "format", "sort", "size"}
    shown |= {each["name"] for menu in menus for each in menu["inputs"]}
    return [(name, value) for name, values in request.GET.lists() if name not in shown for value in values]


def _chips(request: HttpRequest, filterset: FilterSet) -> list[dict[str, str]]:
    """Return a chip for each active filter, with the query that removes it."""
    chips = []
    for name, each in filterset.filters.items():
        if name == "q":
            continue
        for value in filter(None, request.GET.getlist(name)):
            query = request.GET.copy()
            query.setlist(name, [other for other in query.getlist(name) if other != value])
            query.pop("cursor", None)
            text = f"{each.label}: {_shown(filterset, name, each, value)}"
            chips.append({"text": text, "query": query.urlencode()})
    return chips


def _shown(filterset: FilterSet, name: str, each: Any, value: str) -> str:
    if isinstance(each, ObjectFilter):
        return each.name_of(value)
    if isinstance(each, TypedInputMixin) and (found := filterset.form.cleaned_data.get(name)):
        return each.display_text(found)
    choices = dict(getattr(filterset.form.fields[name], "choices", ()))
    known = {str(key): str(label) for key, label in choices.items()}
    return known.get(value, value)
