"""Lists of observations, and the columns they add to the list of definitions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from django.db.models import QuerySet, Sum
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from lcm.domain.roles import Role
from lcm.models import LabletDefinition
from lcm.pages import lists
from lcm.web.list_columns import NEVER, Column
from lcm.web.list_page import BulkAction, ListAddition, ListPage
from lcm.web.pagination import COUNT_CAP
from lcm.web.wording import Plural
from observations.arithmetic.assessment import DAYS
from observations.arithmetic.measures import ALLOCATED, MEASURED, USED
from observations.filters import DriftFilter, EvidenceFilter
from observations.models import DefinitionAssessment, SessionObservation
from observations.models.drift import KIND_LABELS
from observations.models.resource_labels import (
    PEAK_LABELS,
    PEAK_SOURCE_LABELS,
    RECOMMENDED_LABELS,
    REQUIRED_LABELS,
)
from observations.pages.not_counted import not_counted_text
from observations.selectors.drift import drift_reviews, open_drift
from observations.selectors.sessions import observed_newest
from observations.services.samples import column


def _assessed(rows: QuerySet[LabletDefinition]) -> QuerySet[LabletDefinition]:
    # An inner join, so that the order by review priority comes from the index on assessments.
    rows = rows.filter(assessment__isnull=False)
    return rows.select_related("assessment").defer("assessment__days", "assessment__reasons")


def _lead() -> str:
    """Return how many definitions need review, and their waste."""
    total = LabletDefinition.objects.count()
    to_review = DefinitionAssessment.objects.filter(priority__gt=0)
    count = to_review.count()
    if not total:
        return gettext("**No definitions yet.** Import a CML topology to create one.")
    if not count:
        return gettext("**No definition needs review.**")
    waste: Any = to_review.aggregate(cpu=Sum("waste_cpu"), memory=Sum("waste_memory"))
    definitions_text = ngettext("%(count)s definition", "%(count)s definitions", total)
    text = lists.NEEDS_REVIEW.text(count, definitions=definitions_text % {"count": f"{total:,}"})
    if waste["cpu"] or waste["memory"]:
        wasted = gettext("Waste in the last %(days)s days: %(cpu)s core-hours and %(memory)s GB-hours.") % {
            "days": DAYS,
            "cpu": f"{waste['cpu']:,.0f}",
            "memory": f"{waste['memory']:,.0f}",
        }
        text = f"{text} {wasted}"
    return text


def _required(name: str) -> Any:
    return lambda row: getattr(row.current_revision, name)


def _recommended(name: str) -> Any:
    return lambda row: getattr(row.assessment, f"recommended_{name}")


def _waste(name: str) -> Any:
    return lambda row: getattr(row.assessment, f"waste_{name}")


_CELLS = "observations/definition_cells.html#"
_CLASS = Column(
    _("Class"),
    lambda row: row.assessment.get_provisioning_display(),
    cell=f"{_CELLS}class",
    name="class",
    phone="side",
)
_SESSIONS = Column(
    _("Sessions"), lambda row: row.assessment.n, sort="-assessment__n", numeric=True, name="sessions"
)
_OBSERVED = Column(
    _("Observed"),
    lambda row: row.assessment.last_observed_at,
    numeric=True,
    empty=NEVER,
    name="observed",
    phone="end",
)
ASSESSED_DEFINITIONS = ListAddition(
    "definitions",
    hidden=("status", "storage_gb", "revision", "imported"),
    columns=[
        Column(_("Definition"), str, sort="name", cell=f"{_CELLS}name", name="definition"),
        replace(_CLASS, after="definition"),
        Column(
            _("CPU: current → recommended"),
            _required("cpu_cores"),
            sort="-current_revision__cpu_cores",
            numeric=True,
            cell=f"{_CELLS}cpu",
            card_label="CPU",
            name="cpu_cores",
            phone="below",
        ),
        Column(
            _("Memory: current → recommended"),
            _required("memory_gb"),
            sort="-current_revision__memory_gb",
            numeric=True,
            cell=f"{_CELLS}memory",
            card_label=_("Memory"),
            name="memory_gb",
        ),
        Column(
            _("CPU waste"),
            _waste("cpu"),
            sort="-assessment__waste_cpu",
            numeric=True,
            cell=f"{_CELLS}cpu_waste",
            empty="",
        ),
        Column(
            _("Memory waste"),
            _waste("memory"),
            sort="-assessment__waste_memory",
            numeric=True,
            cell=f"{_CELLS}memory_waste",
            empty="",
        ),
        _SESSIONS,
        _OBSERVED,
    ],
    export_columns=[
        replace(_CLASS, after="definition"),
        *(Column(REQUIRED_LABELS[name], _required(name), name=name) for name in MEASURED),
        *(Column(RECOMMENDED_LABELS[name], _recommended(name), after=MEASURED[-1]) for name in MEASURED),
        Column(_("Wasted core-hours"), lambda row: row.assessment.wasted("cpu_cores"), after=MEASURED[-1]),
        Column(_("Wasted GB-hours"), lambda row: row.assessment.wasted("memory_gb"), after=MEASURED[-1]),
        replace(_SESSIONS, after=MEASURED[-1]),
        replace(_OBSERVED, after="revision"),
    ],
    rows=_assessed,
    default_sort="-assessment__priority",
    sorted_by=_("review priority"),
    note=format_lazy(
        _("Waste covers the last {days} days. Sessions counts the measured sessions."), days=DAYS
    ),
    lead=_lead,
)


def _drift_lead() -> str:
    now = timezone.now()
    count, conflicts = open_drift(now).count(), open_drift(now).filter(kind="conflict").count()
    if not count:
        return gettext("**No open deviations.** All labs use their allocated ports.")
    text = ngettext("%(count)s open deviation", "%(count)s open deviations", count) % {"count": f"{count:,}"}
    if conflicts:
        clash = ngettext("%(count)s conflict", "%(count)s conflicts", conflicts)
        text = f"{text}, {clash % {'count': f'{conflicts:,}'}}"
    return gettext("**%(counts)s.** Leaked ports are reserved on their workers.") % {"counts": text}


DRIFT = ListPage(
    title=_("Port drift"),
    export_name="deviations",
    counted=Plural(ngettext_lazy("%(count)s deviation", "%(count)s deviations")),
    search_label=_("Search deviations"),
    no_match_title=_("No deviation matches"),
    empty_title=_("No deviations yet"),
    rows=drift_reviews,
    filterset=DriftFilter,
    columns=[
        Column(_("State"), lambda row: row.state_at(timezone.now()).label, cell="state"),
        Column(_("Port"), lambda row: row.name, cell="port", phone="side"),
        Column(
            _("Difference"), lambda row: KIND_LABELS[row.kind], css="wide", cell="difference", phone="below"
        ),
        Column(_("Definition"), lambda row: str(row.definition), cell="definition"),
        Column(_("Sessions"), lambda row: row.sessions, sort="-sessions", numeric=True),
        Column(_("First observed"), lambda row: row.first_seen, sort="-first_seen", numeric=True),
        Column(
            _("Last observed"),
            lambda row: row.last_seen,
            sort="-last_seen",
            numeric=True,
            cell="last_seen",
            phone="end",
        ),
    ],
    cells="observations/drift_cells.html",
    default_sort="-last_seen",
    search_hint=_("Port, definition, reason"),
    icon="arrows-right-left",
    empty_hint=_("Deviations appear here when a lab uses ports other than its allocated ports."),
    lead=_drift_lead,
    bulk=[BulkAction(_("Acknowledge…"), "drift_bulk_acknowledge", Role.OPERATOR)],
)


def _evidence() -> QuerySet[SessionObservation]:
    rows = SessionObservation.objects.select_related("definition", "session__owner", "revision")
    long = ("topology_yaml", "nodes", "links")
    seen = ("observed_resources", "peak_resources")
    return rows.defer(*seen, *(f"definition__{name}" for name in long), "revision__aggregate")


def _peak(resource: str, source: str) -> Any:
    return lambda row: getattr(row, column(resource, source))


def _evidence_lead() -> str:
    """Return how many sessions were observed, count, and exceeded their requirement."""
    found = observed_newest(COUNT_CAP)
    if not found.n:
        return gettext("**No sessions observed yet.**")
    if found.n == COUNT_CAP:
        sessions = ngettext(
            "Newest %(count)s observed session", "Newest %(count)s observed sessions", found.n
        )
    else:
        sessions = ngettext("%(count)s observed session", "%(count)s observed sessions", found.n)
    return gettext("**%(sessions)s · %(counted)s counted** · %(above)s above the allocation") % {
        "sessions": sessions % {"count": f"{found.n:,}"},
        "counted": f"{found.counting:,}",
        "above": f"{found.above:,}",
    }


EVIDENCE = ListPage(
    title=_("Observed sessions"),
    export_name="observed-sessions",
    counted=Plural(ngettext_lazy("%(count)s observed session", "%(count)s observed sessions")),
    search_label=_("Search observed sessions"),
    no_match_title=_("No observed session matches"),
    empty_title=_("No observed sessions yet"),
    rows=_evidence,
    filterset=EvidenceFilter,
    columns=[
        Column(_("Session"), lambda row: str(row.session_id), export_label=_("ID"), cell="session"),
        Column(_("Definition"), lambda row: str(row.definition), cell="definition", phone="below"),
        *(
            Column(PEAK_LABELS[name], _peak(name, USED), numeric=True, cell=name, empty="")
            for name in MEASURED
        ),
        Column(_("Counted"), lambda row: not_counted_text(row) or gettext("yes"), css="wide", cell="counted"),
        Column(_("Observed"), lambda row: row.observed_at, sort="-observed_at", numeric=True, phone="side"),
    ],
    cells="observations/evidence_cells.html",
    export_columns=[
        Column(_("ID"), lambda row: str(row.session_id)),
        Column(_("Definition"), lambda row: str(row.definition)),
        Column(_("Revision"), lambda row: row.revision.number),
        Column(_("Epoch"), lambda row: row.epoch),
        Column(_("Owner"), lambda row: row.session.owner.username),
        Column(_("Observed"), lambda row: row.observed_at),
        *(Column(PEAK_SOURCE_LABELS[key], _peak(*key)) for key in product(MEASURED, (ALLOCATED, USED))),
        Column(_("Booted seconds"), lambda row: row.booted_seconds),
        Column(_("Held seconds"), lambda row: row.held_seconds),
        Column(_("Counted"), lambda row: row.is_sample),
        Column(_("Exclusion reason"), not_counted_text),
        Column(_("Exclusion comment"), lambda row: row.excluded_reason),
    ],
    row_actions=Role.ADMIN,
    actions_cell="observations/evidence_cells.html#actions",
    default_sort="-observed_at",
    search_hint=_("ID, owner, definition"),
    icon="eye",
    empty_hint=_("LCM observes each lab before teardown and on request."),
    lead=_evidence_lead,
    note=_("Peak usage of each lab and its allocation. Reviews use the sessions that count."),
    bulk=[
        BulkAction(_("Exclude…"), "evidence_bulk_exclude", Role.ADMIN),
        BulkAction(_("Include…"), "evidence_bulk_include", Role.ADMIN),
    ],
)
