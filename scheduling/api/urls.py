"""The API of capacity, beside that of `lcm`."""

from django.urls import include, path

from lcm.api.urls import Router
from scheduling.api.views.internal import BootViewSet, InternalSlotViewSet, LeaseViewSet
from scheduling.api.views.pools import PoolViewSet, TickViewSet
from scheduling.api.views.reservations import ReservationViewSet
from scheduling.api.views.slots import SlotViewSet

app_name = "capacity"

router = Router()
router.register("pools", PoolViewSet, "pool")
router.register("slots", SlotViewSet, "slot")
router.register("reservations", ReservationViewSet, "reservation")
router.register("ticks", TickViewSet, "tick")

internal = Router()
internal.register("slots", InternalSlotViewSet, "internal-slot")
internal.register("boot", BootViewSet, "internal-boot")
internal.register("leases", LeaseViewSet, "internal-lease")

urlpatterns = [
    path("", include(router.urls)),
    path("internal/", include(internal.urls)),
]
