"""Read-only admin of observations; only services write them."""

from __future__ import annotations

from django.contrib import admin

from lcm.admin.data_fixes import ReadOnlyAdmin
from observations.models import (
    DefinitionAssessment,
    DriftReview,
    ObservationRequest,
    Presence,
    ResourceAggregate,
    ScrapeTarget,
    SessionObservation,
)


@admin.register(SessionObservation)
class SessionObservationAdmin(ReadOnlyAdmin):
    note = "Observed sessions. To exclude one from the evidence, use its definition's page."
    note_page = "evidence_list"
    list_display = (
        "__str__",
        "definition",
        "observed_at",
        "peak_cpu_used",
        "peak_memory_used",
        "not_counted_reason",
    )
    list_filter = ("is_sample", "not_counted_reason", "observed_at")
    list_select_related = ("definition",)
    search_fields = ("definition__name",)
    ordering = ("-observed_at", "-session_id")
    sortable_by = ("observed_at",)


@admin.register(ResourceAggregate)
class ResourceAggregateAdmin(ReadOnlyAdmin):
    note = "Histograms of samples; `manage.py rebuild_aggregates` rebuilds them from the sessions."
    list_display = ("__str__", "definition", "epoch", "revision")
    list_select_related = ("definition", "revision")
    search_fields = ("definition__name",)
    ordering = ("definition", "id")


@admin.register(DefinitionAssessment)
class DefinitionAssessmentAdmin(ReadOnlyAdmin):
    note = "Current assessment of each definition, as shown in its list."
    note_page = "definition_list"
    list_display = (
        "definition",
        "provisioning",
        "confidence",
        "n",
        "last_observed_at",
        "snoozed_until",
        "due_at",
    )
    list_filter = ("provisioning", "confidence")
    list_select_related = ("definition",)
    search_fields = ("definition__name",)
    ordering = ("-priority", "definition")


@admin.register(DriftReview)
class DriftReviewAdmin(ReadOnlyAdmin):
    note = "Ports that differ from the plan. Acknowledge them on the Port drift page."
    note_page = "drift_list"
    list_display = ("name", "kind", "definition", "state", "acknowledged_until", "last_seen")
    list_filter = ("state", "kind", "last_seen")
    list_select_related = ("definition",)
    search_fields = ("name", "definition__name")
    ordering = ("-last_seen", "-id")


@admin.register(ObservationRequest)
class ObservationRequestAdmin(ReadOnlyAdmin):
    note = "Requests to observe a session, and whether the controller completed them."
    list_display = ("session", "state", "actor", "requested_at", "completed_at")
    search_fields = ("actor",)
    list_filter = ("state", "requested_at")
    list_select_related = ("session",)
    ordering = ("-requested_at", "-id")


@admin.register(Presence)
class PresenceAdmin(ReadOnlyAdmin):
    note = "Processes with the address of their metrics and the time of their last report."
    list_display = ("name", "kind", "address", "seen_at")
    list_filter = ("kind",)
    search_fields = ("name", "address")
    ordering = ("kind", "name", "id")


@admin.register(ScrapeTarget)
class ScrapeTargetAdmin(ReadOnlyAdmin):
    note = "Scrape targets for Prometheus, maintained by the observer service-discovery."
    note_page = "observer_list"
    list_display = ("name", "kind", "address", "since")
    list_filter = ("kind",)
    search_fields = ("name", "address")
    ordering = ("kind", "name", "id")
