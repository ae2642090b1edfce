"""The inbox: the list of a person's entries, opening an entry, and marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from lcm.domain.errors import InvalidInput
from lcm.domain.roles import Role
from lcm.models import ChangeLog, Delivery, User
from lcm.selectors.inbox import inbox_of, unread_of
from lcm.services.inbox import mark_read, mark_unread
from lcm.web.access import role_required
from lcm.web.delivery_filters import InboxFilter, event_title
from lcm.web.form_page import FormResult, redirect_with_message
from lcm.web.list_columns import Column
from lcm.web.list_page import BulkAction, ListPage, PageAction, list_page, selected_rows, with_additions
from lcm.web.object_links import link_objects
from lcm.web.pagination import capped_count
from lcm.web.wording import Plural

_UNREAD = Plural(ngettext_lazy("**%(count)s unread.**", "**%(count)s unread.**"))
_MARKED_READ = Plural(ngettext_lazy("%(count)s entry marked as read.", "%(count)s entries marked as read."))
_MARKED_UNREAD = Plural(
    ngettext_lazy("%(count)s entry marked as unread.", "%(count)s entries marked as unread.")
)

INBOX = ListPage(
    title=_("Inbox"),
    export_name="inbox",
    counted=Plural(ngettext_lazy("%(count)s entry", "%(count)s entries")),
    search_label=_("Search the inbox"),
    no_match_title=_("No entry matches"),
    empty_title=_("The inbox is empty"),
    rows=Delivery.objects.none,
    filterset=InboxFilter,
    columns=[
        Column(_("Entry"), lambda row: row.cloud_event["data"]["message"], cell="entry"),
        Column(_("Event"), lambda row: event_title(row.type), phone="below"),
        Column(_("Because"), lambda row: row.get_cause_display(), cell="cause"),
        Column(_("State"), lambda row: "read" if row.read_at else "unread", cell="state", phone="side"),
        Column(_("Time"), lambda row: row.created_at, sort="-created_at", numeric=True, phone="end"),
    ],
    cells="inbox/cells.html",
    template="inbox/list.html",
    default_sort="-created_at",
    search_hint=_("Text of the event"),
    icon="inbox",
    empty_hint=_("Events of your sessions and of objects that you watch appear here for 30 days."),
    actions=[PageAction(_("Choose notifications"), "notification_settings", Role.VIEWER, "cog-6-tooth")],
    bulk=[
        BulkAction(_("Mark as read"), "inbox_read", Role.VIEWER),
        BulkAction(_("Mark as unread"), "inbox_unread", Role.VIEWER),
    ],
)


def _page_of(user: User) -> ListPage:
    return replace(INBOX, rows=lambda: inbox_of(user), lead=lambda: _lead(user))


def _lead(user: User) -> str:
    count, more = capped_count(unread_of(user))
    return _UNREAD.text(count, is_capped=more)


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


@require_GET
@role_required(Role.VIEWER)
def inbox_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, _page_of(_user(request)))


@require_GET
@role_required(Role.VIEWER)
def inbox_open(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Mark an entry as read and open the page of its object, or the change if there is none."""
    entry = get_object_or_404(inbox_of(_user(request)), pk=pk)
    mark_read(user=_user(request), keys=[entry.pk], now=timezone.now())
    change = ChangeLog.objects.filter(pk=entry.event or 0).first()
    if change is None:
        messages.info(request, gettext("This was a test. The event is an example."))
        return redirect("inbox_list")
    link_objects([change])
    return redirect(change.object_url or reverse("change_detail", args=[change.pk]))


@require_POST
@role_required(Role.VIEWER)
def inbox_read(request: HttpRequest) -> HttpResponseBase:
    keys = _selected(request)
    return _answer(request, _MARKED_READ, mark_read(user=_user(request), keys=keys, now=timezone.now()))


@require_POST
@role_required(Role.VIEWER)
def inbox_unread(request: HttpRequest) -> HttpResponseBase:
    return _answer(request, _MARKED_UNREAD, mark_unread(user=_user(request), keys=_selected(request)))


@require_POST
@role_required(Role.VIEWER)
def inbox_read_all(request: HttpRequest) -> HttpResponseBase:
    return _answer(request, _MARKED_READ, mark_read(user=_user(request), now=timezone.now()))


def _selected(request: HttpRequest) -> Sequence[UUID]:
    """Return the keys of the selected entries; none, with a message, if the selection is not valid."""
    try:
        rows: Any = selected_rows(request, with_additions(_page_of(_user(request))))[0]
    except InvalidInput as error:
        messages.error(request, error.message)
        return []
    return list(rows.order_by().values_list("pk", flat=True))


def _answer(request: HttpRequest, text: Plural, count: int) -> HttpResponseBase:
    query = request.POST.get("filter_query", "")
    url = reverse("inbox_list")
    return redirect_with_message(request, FormResult(text.text(count), f"{url}?{query}" if query else url))
