"""Lists of observations, and the columns they add to the list of definitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet, Sum
from django.utils import timezone
from django.utils.translation import ngettext_lazy

from lcm.domain.roles import Role
from lcm.models import LabletDefinition
from lcm.pages import lists
from lcm.selectors.definitions import definitions
from lcm.web.list_page import BulkAction, Column, ListPage
from lcm.web.pagination import COUNT_CAP
from lcm.web.wording import Plural, count_text
from observations.arithmetic.assessment import DAYS
from observations.arithmetic.measures import MEASURED
from observations.filters import DriftFilter, EvidenceFilter
from observations.models import DefinitionAssessment, SessionObservation
from observations.models.drift import KIND_WORDS
from observations.pages.not_counted import not_counted_text
from observations.selectors.drift import drift_reviews, open_drift
from observations.selectors.sessions import observed_newest


def _assessed() -> QuerySet[LabletDefinition]:
    # An inner join, so that the order by review priority comes from the index on assessments.
    rows = definitions().filter(assessment__isnull=False)
    return rows.select_related("assessment").defer("assessment__days", "assessment__reasons")


def _lead() -> str:
    """Return how many definitions need review, and their waste."""
    total = LabletDefinition.objects.count()
    to_review = DefinitionAssessment.objects.filter(priority__gt=0)
    count = to_review.count()
    if not total:
        return "**No definitions yet.** Import a CML topology to create one."
    if not count:
        return "**No definition needs review.**"
    waste: Any = to_review.aggregate(cpu=Sum("waste_cpu"), memory=Sum("waste_memory"))
    text = lists.NEEDS_REVIEW.text(count, definitions=count_text(total, "definition"))
    if waste["cpu"] or waste["memory"]:
        text += (
            f" Waste in the last {DAYS} days: {waste['cpu']:,.0f} core-hours and "
            f"{waste['memory']:,.0f} GB-hours."
        )
    return text


def _asked(name: str) -> Any:
    return lambda row: getattr(row.current_revision, name)


def _recommended(name: str) -> Any:
    return lambda row: getattr(row.assessment, f"recommended_{name}")


_EXPORTED = {"cpu_cores": "CPU cores", "memory_gb": "Memory GB", "storage_gb": "Storage GB"}
DEFINITIONS = replace(
    lists.DEFINITIONS,
    rows=_assessed,
    columns=[
        Column("Definition", str, sort="name"),
        Column("Class", lambda row: row.assessment.get_provisioning_display()),
        Column(
            "CPU: current → recommended",
            _asked("cpu_cores"),
            sort="-current_revision__cpu_cores",
            numeric=True,
        ),
        Column(
            "Memory: current → recommended",
            _asked("memory_gb"),
            sort="-current_revision__memory_gb",
            numeric=True,
        ),
        Column(
            "CPU waste", lambda row: row.assessment.waste_cpu, sort="-assessment__waste_cpu", numeric=True
        ),
        Column(
            "Memory waste",
            lambda row: row.assessment.waste_memory,
            sort="-assessment__waste_memory",
            numeric=True,
        ),
        Column("Sessions", lambda row: row.assessment.n, sort="-assessment__n", numeric=True),
        Column("Observed", lambda row: row.assessment.last_observed_at, numeric=True),
    ],
    export_columns=[
        Column("Definition", str),
        Column("Class", lambda row: row.assessment.get_provisioning_display()),
        Column("Status", lambda row: row.get_status_display()),
        *(Column(f"{_EXPORTED[name]} set", _asked(name)) for name in MEASURED),
        *(Column(f"{_EXPORTED[name]} recommended", _recommended(name)) for name in MEASURED),
        Column("Wasted core-hours", lambda row: row.assessment.wasted("cpu_cores")),
        Column("Wasted GB-hours", lambda row: row.assessment.wasted("memory_gb")),
        Column("Sessions", lambda row: row.assessment.n),
        Column("Revision", lambda row: row.current_revision.number),
        Column("Observed", lambda row: row.assessment.last_observed_at),
        Column("Imported", lambda row: row.created_at),
    ],
    row_template="observations/definition_row.html",
    default_sort="-assessment__priority",
    sorted_by="review priority",
    note=f"Waste covers the last {DAYS} days. Sessions counts the measured sessions.",
    lead=_lead,
)


def _drift_lead() -> str:
    now = timezone.now()
    count, conflicts = open_drift(now).count(), open_drift(now).filter(kind="conflict").count()
    if not count:
        return "**No open deviations.** All labs use their allocated ports."
    clash = f", {count_text(conflicts, 'conflict')}" if conflicts else ""
    return f"**{count_text(count, 'open deviation')}{clash}.** Leaked ports are reserved on their workers."


DRIFT = ListPage(
    title="Port drift",
    export_name="deviations",
    counted=Plural(ngettext_lazy("%(count)s deviation", "%(count)s deviations")),
    search_label="Search deviations",
    no_match_title="No deviation matches",
    empty_title="No deviations yet",
    rows=drift_reviews,
    filterset=DriftFilter,
    columns=[
        Column("State", lambda row: row.state_at(timezone.now()).label),
        Column("Port", lambda row: row.name),
        Column("Difference", lambda row: KIND_WORDS[row.kind]),
        Column("Definition", lambda row: str(row.definition)),
        Column("Sessions", lambda row: row.sessions, sort="-sessions", numeric=True),
        Column("First observed", lambda row: row.first_seen, sort="-first_seen", numeric=True),
        Column("Last observed", lambda row: row.last_seen, sort="-last_seen", numeric=True),
    ],
    row_template="observations/drift_row.html",
    default_sort="-last_seen",
    search_hint="Port, definition, reason",
    icon="arrows-right-left",
    empty_hint="Deviations appear here when a lab uses other ports than it was allocated.",
    lead=_drift_lead,
    bulk=[BulkAction("Acknowledge…", "drift_bulk_acknowledge", Role.OPERATOR)],
)


def _evidence() -> QuerySet[SessionObservation]:
    rows = SessionObservation.objects.select_related("definition", "session__owner", "revision")
    long = ("topology_yaml", "nodes", "links")
    seen = ("observed_resources", "peak_resources")
    return rows.defer(*seen, *(f"definition__{name}" for name in long), "revision__aggregate")


def _peak(name: str) -> Any:
    return lambda row: getattr(row, f"peak_{name}")


def _evidence_lead() -> str:
    """Return how many sessions were observed, count, and exceeded their requirement."""
    found = observed_newest(COUNT_CAP)
    if not found.n:
        return "**No sessions observed yet.**"
    sessions = count_text(found.n, "observed session")
    if found.n == COUNT_CAP:
        sessions = f"Newest {sessions}"
    return f"**{sessions} · {found.counting:,} counted** · {found.above:,} above the allocation"


EVIDENCE = ListPage(
    title="Observed sessions",
    export_name="observed-sessions",
    counted=Plural(ngettext_lazy("%(count)s observed session", "%(count)s observed sessions")),
    search_label="Search observed sessions",
    no_match_title="No observed session matches",
    empty_title="No observed sessions yet",
    rows=_evidence,
    filterset=EvidenceFilter,
    columns=[
        Column("Session", lambda row: str(row.session_id), export_label="Id"),
        Column("Definition", lambda row: str(row.definition)),
        Column("Peak CPU", _peak("cpu_used"), numeric=True),
        Column("Peak memory", _peak("memory_used"), numeric=True),
        Column("Peak storage", _peak("storage_used"), numeric=True),
        Column("Counted", lambda row: not_counted_text(row) or "yes"),
        Column("Observed", lambda row: row.observed_at, sort="-observed_at", numeric=True),
    ],
    export_columns=[
        Column("Id", lambda row: str(row.session_id)),
        Column("Definition", lambda row: str(row.definition)),
        Column("Revision", lambda row: row.revision.number),
        Column("Epoch", lambda row: row.epoch),
        Column("Owner", lambda row: row.session.owner.username),
        Column("Observed", lambda row: row.observed_at),
        *(
            Column(f"Peak {name.replace('_', ' ')}", _peak(name))
            for name in (
                "cpu_allocated",
                "cpu_used",
                "memory_allocated",
                "memory_used",
                "storage_allocated",
                "storage_used",
            )
        ),
        Column("Booted seconds", lambda row: row.booted_seconds),
        Column("Held seconds", lambda row: row.held_seconds),
        Column("Counted", lambda row: row.is_sample),
        Column("Exclusion reason", not_counted_text),
        Column("Exclusion comment", lambda row: row.excluded_reason),
    ],
    row_actions=Role.ADMIN,
    row_template="observations/evidence_row.html",
    default_sort="-observed_at",
    search_hint="Id, owner, definition",
    icon="eye",
    empty_hint="LCM observes each lab before teardown and on request.",
    lead=_evidence_lead,
    note="Peak usage of each lab and its allocation. Reviews use the sessions that count.",
    bulk=[
        BulkAction("Exclude…", "evidence_bulk_exclude", Role.ADMIN),
        BulkAction("Include…", "evidence_bulk_include", Role.ADMIN),
    ],
)
