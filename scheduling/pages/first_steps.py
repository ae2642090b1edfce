"""Steps of a new installation: the pool, its worker and its controller."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from lcm.web.first_steps import FirstStep
from scheduling.models import Pool, Slot, SlotState


def _worker_url() -> str:
    """Return the form with the workers: of the only pool, else the list of pools."""
    pools = list(Pool.objects.values_list("pk", flat=True)[:2])
    return reverse("pool_edit", args=pools) if len(pools) == 1 else reverse("pool_list")


FIRST_STEPS = (
    FirstStep(
        30,
        _("Create a pool"),
        _("Workers of one kind, with their number and their capacity."),
        lambda: Pool.objects.exists(),
        lambda: reverse("pool_create"),
        "first-worker.html#2-pool",
    ),
    FirstStep(
        40,
        _("Connect a worker"),
        _("Enter the address of a CML server and test the connection. Its slot becomes ready."),
        lambda: Slot.objects.filter(state=SlotState.READY).exists(),
        _worker_url,
        "first-worker.html#1-certificate",
    ),
)
