"""URLs of the observations API."""

from django.urls import include, path

from lcm.api.urls import Router
from observations.api.views.definitions import DefinitionEvidenceViewSet
from observations.api.views.discovery import TargetViewSet
from observations.api.views.drift import DriftReviewViewSet
from observations.api.views.live import LiveViewSet, SessionLiveViewSet
from observations.api.views.sessions import InternalObservationViewSet, SessionObservationViewSet

app_name = "observations"

router = Router()
router.register("lablet-definitions", DefinitionEvidenceViewSet, "definition")
router.register("lablet-sessions", SessionObservationViewSet, "session")
router.register("lablet-sessions", SessionLiveViewSet, "session-live")
router.register("live-stats", LiveViewSet, "live-stats")
router.register("port-drift", DriftReviewViewSet, "drift")

internal = Router()
internal.register("lablet-sessions", InternalObservationViewSet, "internal-session")
internal.register("prometheus-targets", TargetViewSet, "internal-prometheus-targets")

urlpatterns = [
    path("internal/", include(internal.urls)),
    path("", include(router.urls)),
]
