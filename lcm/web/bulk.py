"""Doing something to many rows: first say what will happen, then do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

from lcm.errors import InvalidInput
from lcm.web.form_pages import Done, go, save_form, show
from lcm.web.forms import ReasonForm
from lcm.web.lists import ListPage, selection, shown_list

Work = Callable[[QuerySet[Any], str], str]


@dataclass(frozen=True)
class BulkPage:
    """One bulk action: how it is called, what it does to how many, and the function that does it."""

    page: ListPage
    list_url: str
    verb: str
    effect: str
    work: Work
    danger: bool = False


def bulk_page(request: HttpRequest, bulk: BulkPage) -> HttpResponseBase:
    """Ask with the number of rows; with the reason given, do it."""
    back = reverse(bulk.list_url)
    try:
        rows, how = selection(request, shown_list(bulk.page))
    except InvalidInput as error:
        messages.error(request, error.message)
        return go(request, Done("", back))
    count = rows.count()
    if not count:
        messages.warning(request, f"No {bulk.page.noun} was selected.")
        return go(request, Done("", back))
    form = ReasonForm(request.POST if "reason" in request.POST else None)
    if form.is_bound:
        done = save_form(form, lambda data: Done(bulk.work(rows, data["reason"]), back))
        if done:
            return go(request, done)
    named = f"{count:,} {bulk.page.named(count)}"
    context = {
        "bulk": bulk,
        "form": form,
        "named": named,
        "how": how,
        "keys": request.POST.getlist("pk") if how == "ticked" else [],
        "filter_query": request.POST.get("filter_query", ""),
        "back": back,
        "crumbs": [(bulk.page.title, back), (f"{bulk.verb} {named}", "")],
    }
    return show(request, "bulk.html", context, status=422 if form.is_bound else 200)
