"""The global search with its suggestions, the keyboard shortcuts, and the finders for objects of `lcm`."""

from __future__ import annotations

from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role, role_of
from lcm.models import LabletDefinition, Project, User
from lcm.selectors.names import by_id
from lcm.selectors.sessions import sessions
from lcm.web.access import htmx_of, role_required
from lcm.web.form_page import render_page
from lcm.web.navigation import navigation_groups
from lcm.web.search import MAX_SUGGESTIONS, SearchHit, search

LONGEST = 100
# Shorter texts are only matched against the beginning of people's names.
ANYWHERE_FROM = 3


@require_GET
@role_required(Role.VIEWER)
def search_page(request: HttpRequest) -> HttpResponseBase:
    """Return the results by kind; for htmx without the page around them."""
    text = _text_of(request)
    groups = search(text, role_of(request.user)) if text else []
    htmx = htmx_of(request)
    partial = htmx and not htmx.boosted
    context = {
        "oob": partial,
        "text": text,
        "groups": groups,
        "found": sum(len(group.hits) for group in groups),
        "has_more": any(group.more for group in groups),
        "crumbs": [(gettext("Search"), "")],
    }
    return render(request, "search/page.html#found" if partial else "search/page.html", context)


@require_GET
@role_required(Role.VIEWER)
def search_suggestions(request: HttpRequest) -> HttpResponseBase:
    """Return the first results by kind, as options of the search box and of the command palette."""
    text = _text_of(request)
    groups = search(text, role_of(request.user), limit=MAX_SUGGESTIONS) if text else []
    return render(request, "search/suggestions.html", {"text": text, "groups": groups})


@require_GET
@role_required(Role.VIEWER)
def shortcuts(request: HttpRequest) -> HttpResponseBase:
    """Return the page of keyboard shortcuts, or its dialog for htmx."""
    role = role_of(request.user)
    entries = [entry for group in navigation_groups() for entry in group.entries]
    context = {
        "entries": [entry for entry in entries if entry.shortcut and role >= entry.role],
        "crumbs": [(gettext("Keyboard shortcuts"), "")],
    }
    return render_page(request, "search/shortcuts.html", context)


def _text_of(request: HttpRequest) -> str:
    return request.GET.get("q", "")[:LONGEST].replace("\0", "").strip()


def find_sessions(text: str, limit: int, role: Role) -> list[SearchHit]:
    """Find sessions by the start of their id; the pages of people and definitions link to their sessions."""
    rows = sessions().filter(by_id(text)).order_by("pk")[:limit]
    return [
        SearchHit(
            gettext("Session %(session)s") % {"session": row.short_id},
            reverse("session_detail", args=[row.pk]),
            f"{row.definition} · {row.owner.username} · {row.project.path}",
            row.status,
            row.get_status_display(),
        )
        for row in rows
    ]


def find_definitions(text: str, limit: int, role: Role) -> list[SearchHit]:
    rows = LabletDefinition.objects.filter(Q(name__icontains=text) | by_id(text))
    return [
        SearchHit(
            str(row),
            reverse("definition_detail", args=[row.pk]),
            row.description,
            row.status,
            row.get_status_display(),
        )
        for row in rows.only("name", "version", "description", "status").order_by("name", "pk")[:limit]
    ]


def find_projects(text: str, limit: int, role: Role) -> list[SearchHit]:
    named = Q(name__icontains=text) | Q(domain__name__icontains=text)
    rows = Project.objects.filter(named | by_id(text)).select_related("domain").order_by("name", "pk")
    return [
        SearchHit(row.path, reverse("project_detail", args=[row.pk]), row.description) for row in rows[:limit]
    ]


def find_people(text: str, limit: int, role: Role) -> list[SearchHit]:
    """Find people whose name begins with the text (indexed), then people with the text inside their names."""
    found = list(User.objects.filter(Q(username__startswith=text) | by_id(text))[:limit])
    if len(found) < limit and len(text) >= ANYWHERE_FROM:
        parts = Q()
        for column in ("username", "first_name", "last_name"):
            parts |= Q(**{f"{column}__icontains": text})
        others = User.objects.filter(parts).exclude(pk__in=[person.pk for person in found])
        found += others[: limit - len(found)]
    url = reverse("session_list")
    return [
        SearchHit(
            person.username,
            f"{url}?owner={person.pk}",
            person.get_full_name() or gettext("Sessions of this person"),
        )
        for person in found
    ]
