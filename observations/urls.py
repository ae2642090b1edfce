"""URLs of the observation pages."""

from django.urls import path

from observations.pages import (
    controllers,
    drift,
    evidence,
    live,
    port_review,
    review,
    review_snooze,
    sessions,
)

urlpatterns = [
    path("definitions/<uuid:pk>/review", review.definition_review, name="definition_review"),
    path("definitions/<uuid:pk>/review/preview", review.definition_preview, name="definition_preview"),
    path("definitions/<uuid:pk>/review/apply", review.definition_apply, name="definition_apply"),
    path(
        "definitions/<uuid:pk>/review/ports",
        port_review.definition_port_review,
        name="definition_port_review",
    ),
    path(
        "definitions/<uuid:pk>/review/ports/apply",
        port_review.definition_apply_ports,
        name="definition_apply_ports",
    ),
    path("definitions/<uuid:pk>/review/snooze", review_snooze.review_snooze, name="review_snooze"),
    path("definitions/<uuid:pk>/review/dismiss", review_snooze.review_dismiss, name="review_dismiss"),
    path("definitions/<uuid:pk>/drift", drift.definition_drift, name="definition_drift"),
    path("sessions/<uuid:pk>/observation", sessions.session_observation, name="session_observation"),
    path("sessions/<uuid:pk>/live", live.session_live, name="session_live"),
    path("slots/<uuid:pk>/live", live.slot_live, name="slot_live"),
    path("live/busiest", live.busiest_sessions, name="busiest_sessions"),
    path("sessions/<uuid:pk>/observe", sessions.session_observe, name="session_observe"),
    path("sessions/<uuid:pk>/exclude", sessions.session_exclude, name="session_exclude"),
    path("sessions/<uuid:pk>/include", sessions.session_include, name="session_include"),
    path("controllers/", controllers.controller_list, name="controller_list"),
    path("controllers/board", controllers.controller_board, name="controller_board"),
    path("port-drift/", drift.drift_list, name="drift_list"),
    path("port-drift/acknowledge", drift.drift_bulk_acknowledge, name="drift_bulk_acknowledge"),
    path("port-drift/<uuid:pk>/acknowledge", drift.drift_acknowledge, name="drift_acknowledge"),
    path("port-drift/<uuid:pk>/reopen", drift.drift_reopen, name="drift_reopen"),
    path("observations/", evidence.evidence_list, name="evidence_list"),
    path("observations/exclude", evidence.evidence_bulk_exclude, name="evidence_bulk_exclude"),
    path("observations/include", evidence.evidence_bulk_include, name="evidence_bulk_include"),
]
