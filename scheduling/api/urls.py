"""URLs of the scheduling API."""

from django.urls import include, path, re_path

from lcm.api.urls import Router
from lcm.models.base import ID_PATTERN
from scheduling.api.views.decisions import DecisionViewSet, SessionExplainViewSet
from scheduling.api.views.internal import BootViewSet, InternalSlotViewSet, LeaseViewSet
from scheduling.api.views.observers import ObserverViewSet
from scheduling.api.views.pools import PoolViewSet, TickViewSet
from scheduling.api.views.reservations import ReservationViewSet, SessionAccessViewSet, SessionMoveViewSet
from scheduling.api.views.slots import SlotViewSet
from scheduling.api.views.timelines import PoolTimelineViewSet, SessionTimelineViewSet, SlotTimelineViewSet

app_name = "capacity"

router = Router()
router.register("pools", PoolViewSet, "pool")
router.register("slots", SlotViewSet, "slot")
router.register("reservations", ReservationViewSet, "reservation")
router.register("observers", ObserverViewSet, "observer")
router.register("ticks", TickViewSet, "tick")
router.register("decisions", DecisionViewSet, "decision")

internal = Router()
internal.register("slots", InternalSlotViewSet, "internal-slot")
internal.register("boot", BootViewSet, "internal-boot")
internal.register("leases", LeaseViewSet, "internal-lease")

urlpatterns = [
    path("", include(router.urls)),
    re_path(
        f"^lablet-sessions/(?P<pk>{ID_PATTERN})/explain/?$",
        SessionExplainViewSet.as_view({"get": "explain"}),
        name="session-explain",
    ),
    re_path(
        f"^lablet-sessions/(?P<pk>{ID_PATTERN})/access/?$",
        SessionAccessViewSet.as_view({"get": "sheet"}),
        name="session-access",
    ),
    re_path(
        f"^lablet-sessions/(?P<pk>{ID_PATTERN})/move/?$",
        SessionMoveViewSet.as_view({"post": "move"}),
        name="session-move",
    ),
    re_path(
        f"^slots/(?P<pk>{ID_PATTERN})/timeline/?$",
        SlotTimelineViewSet.as_view({"get": "list"}),
        name="slot-timeline",
    ),
    re_path(
        f"^pools/(?P<pk>{ID_PATTERN})/timeline/?$",
        PoolTimelineViewSet.as_view({"get": "list"}),
        name="pool-timeline",
    ),
    re_path(
        f"^lablet-sessions/(?P<pk>{ID_PATTERN})/timeline/?$",
        SessionTimelineViewSet.as_view({"get": "list"}),
        name="session-timeline",
    ),
    path("internal/", include(internal.urls)),
]
