"""Dry run page: simulate the next scheduling cycle with changed input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from lcm.domain.errors import InvalidInput
from lcm.domain.resources import RESOURCE_NAMES, RESOURCES
from lcm.domain.roles import Role
from lcm.models import LabletDefinition
from lcm.selectors.names import by_id
from lcm.web.access import role_required
from lcm.web.forms import PageForm, add_errors
from lcm.web.resources import amount_field
from scheduling.models import Phase, Pool, Reservation, Slot, SlotState
from scheduling.placement.framework.configuration import DEFAULT_CONFIGURATION, MAX_CHARACTERS
from scheduling.selectors.dry_run import (
    MAX_NEW_SLOTS,
    MAX_QUEUE,
    DryRunInput,
    DryRunResult,
    PlacementChange,
    Requirement,
    run_dry_run,
)
from scheduling.selectors.reservations import reservations

MOVES_SHOWN = 100
SLOTS_TO_CHOOSE = 500


class DryRunForm(PageForm):
    """Changes that the dry run assumes; the pool determines the slots and sessions."""

    drain = forms.MultipleChoiceField(
        label=_("Drain these slots"), required=False, widget=forms.CheckboxSelectMultiple
    )
    add_slots = forms.IntegerField(
        label=_("Add slots"), min_value=0, max_value=MAX_NEW_SLOTS, required=False, initial=0
    )
    definition = forms.ChoiceField(label=_("Definition"), required=False)
    session = forms.CharField(
        label=_("Or session"),
        max_length=36,
        required=False,
        help_text=_("The ID of a waiting session, or the start of it. Empty amounts stay unchanged."),
    )
    scheduler = forms.CharField(
        label=_("Scheduler document"),
        max_length=MAX_CHARACTERS,
        required=False,
        widget=forms.Textarea(attrs={"rows": 12, "class": "input mono", "spellcheck": "false"}),
        help_text=_("Weights, arguments, plugins and actions. The document is not saved."),
    )

    def __init__(self, pool: Pool, *args: object, **kwargs: Any) -> None:
        kwargs["initial"] = {
            "scheduler": pool.scheduler or DEFAULT_CONFIGURATION,
            **(kwargs.get("initial") or {}),
        }
        super().__init__(*args, **kwargs)
        for each in RESOURCES:
            self.fields[each.name] = amount_field(each, each.label_with_unit, required=False)
        ready = Slot.objects.filter(pool=pool, state=SlotState.READY).order_by("number")[:SLOTS_TO_CHOOSE]
        self.fields["drain"].choices = [(str(slot.pk), f"{pool}-{slot.number:02}") for slot in ready]  # type: ignore[attr-defined]
        waiting = Reservation.objects.filter(pool=pool, phase=Phase.PENDING).values("session__definition")
        rows = LabletDefinition.objects.filter(pk__in=waiting).only("name", "version")
        self.pool = pool
        choices = [("", gettext("none")), *((str(row.pk), str(row)) for row in rows)]
        self.fields["definition"].choices = choices  # type: ignore[attr-defined]

    def amounts(self) -> list[forms.BoundField]:
        return [self[name] for name in RESOURCE_NAMES]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        named = data.get("definition") or data.get("session")
        has_amounts = any(data.get(name) is not None for name in RESOURCE_NAMES)
        if not named and "session" not in self.errors and has_amounts:
            raise forms.ValidationError(
                gettext("Choose a definition or a session, and enter at least one amount.")
            )
        if data.get("definition") and not has_amounts:
            self.add_error("definition", gettext("Enter at least one amount."))
        return data

    def clean_session(self) -> UUID | None:
        """Find a waiting session by its id or the start of it."""
        text = self.cleaned_data["session"].strip()
        if not text:
            return None
        waiting = Reservation.objects.filter(by_id(text, "session"), pool=self.pool, phase=Phase.PENDING)
        found = list(waiting.values_list("session", flat=True)[:2])
        if not found:
            problem = gettext("No session “%(text)s” is waiting in %(pool)s.")
            raise forms.ValidationError(problem % {"text": text, "pool": self.pool})
        if len(found) > 1:
            problem = gettext("More than one ID begins with “%(text)s”: enter more characters.")
            raise forms.ValidationError(problem % {"text": text})
        return found[0]


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def dry_run(request: HttpRequest) -> HttpResponseBase:
    pools = list(Pool.objects.order_by("name"))
    requested = (request.POST if request.method == "POST" else request.GET).get("pool", "")
    pool = next((each for each in pools if each.name == requested), pools[0] if pools else None)
    context: dict[str, Any] = {
        "pools": pools,
        "pool": pool,
        "limit": MAX_QUEUE,
        "crumbs": [(gettext("Queue"), reverse("queue_list")), (gettext("Dry run"), "")],
    }
    status = 200
    if pool is not None:
        posted = request.method == "POST"
        initial = {"session": request.GET.get("session", "")}
        form = DryRunForm(pool, request.POST if posted else None, initial=initial)
        context["form"] = form
        if posted:
            found = _result(form, pool)
            status = 200 if found else 422
            context |= _shown(found) if found else {}
    return render(request, "queue/dry_run.html", context, status=status)


def _result(form: DryRunForm, pool: Pool) -> DryRunResult | None:
    if not form.is_valid():
        return None
    try:
        return run_dry_run(pool, _what_if(form.cleaned_data, pool), now=timezone.now())
    except InvalidInput as error:
        add_errors(form, error)
    return None


def _what_if(data: Mapping[str, Any], pool: Pool) -> DryRunInput:
    amounts: dict[str, Decimal] = {name: data[name] for name in RESOURCE_NAMES if data[name] is not None}
    definition = UUID(data["definition"]) if data["definition"] else None
    text = data["scheduler"].replace("\r\n", "\n")
    current = (pool.scheduler or DEFAULT_CONFIGURATION).strip()
    return DryRunInput(
        drain=[UUID(key) for key in data["drain"]],
        add_slots=data["add_slots"] or 0,
        requirements=[Requirement(amounts, definition, data["session"])] if amounts else (),
        scheduler=None if text.strip() in ("", current) else text,
    )


def _shown(found: DryRunResult) -> dict[str, Any]:
    """Return the lists of a dry run, each cut to the rows that the page shows."""
    lists = {
        gettext("Newly placed"): found.newly_placed,
        gettext("No longer placed"): found.no_longer_placed,
        gettext("Placed on another slot"): found.moved,
    }
    keys = [move.reservation for moves in lists.values() for move in moves[:MOVES_SHOWN]]
    rows = reservations().in_bulk(keys)
    tables = [(title, _with_rows(moves, rows), len(moves)) for title, moves in lists.items() if moves]
    return {"found": found, "tables": tables, "shown": MOVES_SHOWN}


def _with_rows(
    moves: Sequence[PlacementChange], rows: Mapping[UUID, Reservation]
) -> list[tuple[PlacementChange, Reservation]]:
    return [(move, rows[move.reservation]) for move in moves[:MOVES_SHOWN] if move.reservation in rows]
