"""What the style guide shows the parts with: rows, forms and charts that are nobody's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from django import forms
from django.contrib.messages import ERROR, SUCCESS
from django.contrib.messages.storage.base import Message
from django.utils import timezone

from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import ChangeLog, Domain, LabletDefinition, LabletSession, Project, User
from lcm.web.charts.bars import Share, share_bar
from lcm.web.charts.columns import ByDay, Series, stacked
from lcm.web.charts.dots import Dot, dot_chart
from lcm.web.charts.lines import Point, line_chart
from lcm.web.charts.sparklines import sparkline
from lcm.web.charts.topology import picture_of
from lcm.web.forms import LocalDateTimeField, NamedField, PageForm, ReasonForm
from lcm.web.list_page import PAGE_SIZES, BulkAction, PageAction
from lcm.web.pagination import Page
from lcm.web.panels import Panel

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
GUIDE = "styleguide"
WORDS = ["ccna-ospf-basics", "ccna-vlan-trunking"]


class SampleForm(PageForm):
    name = forms.CharField(help_text="A hint says what is expected.")
    choice = forms.ChoiceField(choices=[("a", "Worth fixing first"), ("b", "Newest first")])
    definition = NamedField(find=str, suggest="definitions", required=False)
    starts_at = LocalDateTimeField(label="Moment", required=False)
    flag = forms.BooleanField(required=False, label="May be interrupted")
    reason = forms.CharField(widget=forms.Textarea(attrs={"rows": 3}), required=False)

    def clean(self) -> None:
        raise forms.ValidationError("What is wrong with the whole stands above the fields.")


@dataclass(frozen=True)
class Row:
    pk: str
    status: str
    waste: str

    def __str__(self) -> str:
        return self.pk


def forms_shown() -> dict[str, Any]:
    return {
        "form": SampleForm(),
        "wrong_form": SampleForm({"name": "", "choice": "z"}, auto_id="wrong_%s"),
        "suggested": WORDS,
    }


def a_list() -> dict[str, Any]:
    """What the list page gives its parts, with three rows of twelve."""
    rows: list[Any] = [
        Row("Rest", "active", "640"),
        Row("Second", "draft", "96"),
        Row("Third", "deprecated", ""),
    ]
    page: Any = SimpleNamespace(
        title="Sample",
        noun="definition",
        plural="definitions",
        icon="document-text",
        search_hint="Name, description",
        empty_title="There is no definition yet",
        empty_hint="What to do next, in a sentence.",
        row_template="styleguide/row.html",
    )
    return {
        "list_page": page,
        "filter_menus": [
            {
                "name": "status",
                "label": "Status",
                "several": True,
                "options": [("active", "Active", True), ("draft", "Draft", False)],
            }
        ],
        "columns": [
            {"label": "Definition", "query": "sort=name", "direction": "ascending"},
            {"label": "State"},
            {"label": "Waste", "numeric": True, "query": "sort=-waste"},
        ],
        "rows": Page(rows=rows, first=1, next="x", previous=None),
        "total": 12,
        "size": PAGE_SIZES[0],
        "sizes": PAGE_SIZES,
        "next_query": "page=2",
        "bulk_actions": [
            BulkAction("Deprecate…", GUIDE, Role.VIEWER),
            BulkAction("Delete…", GUIDE, Role.VIEWER, danger=True),
        ],
        "first_action": PageAction("Import", GUIDE, Role.VIEWER, "arrow-up-tray", primary=True),
    }


def dialogs() -> dict[str, Any]:
    """A dialog of one thing, and one of many."""
    return {
        "dialog_page": {
            "title": "Stop session 81d0be?",
            "text": "Its lab is torn down; unsaved work in it is lost.",
            "submit": "Stop session",
            "danger": True,
        },
        "dialog_form": ReasonForm(auto_id="one_%s"),
        "bulk_work": {"verb": "Cancel", "effect": "Those that run are observed first.", "danger": True},
        "bulk_form": ReasonForm(auto_id="many_%s"),
    }


def messages_shown() -> dict[str, Any]:
    return {
        "sample_messages": [
            Message(SUCCESS, "Revision 8 applied"),
            Message(ERROR, "Two sessions were observed since this preview"),
        ]
    }


def records() -> dict[str, Any]:
    """Sessions, changes and a panel that loads later."""
    now = timezone.now()
    project = Project(name="ccna", domain=Domain(name="academy"))
    shared: Any = {
        "definition": LabletDefinition(name="ccna-ospf-basics", version="1"),
        "project": project,
        "owner": User(username="mara"),
    }
    states = (SessionStatus.RUNNING, SessionStatus.PENDING, SessionStatus.FAILED)
    made = ChangeLog(
        pk=1, message="drain: kernel update", actor="mara", object_label="cml-eu-01", at=now, reason="CVE"
    )
    return {
        "sessions": [LabletSession(status=status, created_at=now, **shared) for status in states],
        "changes": [made],
        "sample_panels": [Panel("sample", "A panel of another app", "change_detail")],
    }


def charts() -> dict[str, Any]:
    days = [date(2026, 3, 1) + timedelta(days=number) for number in range(14)]
    series = [Series("academy", [float(n % 5 * 20) for n in range(14)]), Series("research", [30.0] * 14)]
    waves = [120 + (number * 37) % 90 for number in range(30)]
    nodes = [
        {"id": name, "label": name, "node_definition": "iosv", "x": x, "y": y}
        for name, x, y in (("r1", 0, 0), ("r2", 100, 40), ("host", 200, 0))
    ]
    dots = [Dot(NOON + timedelta(hours=number), 3 + number % 4, f"Session {number}") for number in range(11)]
    dots.append(Dot(NOON + timedelta(hours=11), 7, "Session 11", "over", "above the proposal", "#g-charts"))
    counts = zip(SessionStatus, (4, 2, 1, 3, 20), strict=False)
    return {
        "bar": share_bar([Share(status.label, count, status) for status, count in counts]),
        "column_chart": stacked(ByDay(days, series), unit="core-hours"),
        "line_chart": line_chart(
            [Point(NOON + timedelta(minutes=number), value) for number, value in enumerate(waves)],
            title="Duration of ticks",
            unit="ms",
        ),
        "spark": sparkline(list(enumerate(waves)), title="The last 30 ticks"),
        "dot_chart": dot_chart(
            dots,
            {"current": 8, "proposal": 5.5, "p95": 6, "max": 7},
            text=lambda value: f"{value:g}",
            said=lambda value: f"{value:g} cores",
            unit="cores",
            least=1,
            band=(8, 5.5),
        ),
        "picture": picture_of(nodes, [{"n1": "r1", "n2": "r2"}, {"n1": "r2", "n2": "host"}]),
    }
