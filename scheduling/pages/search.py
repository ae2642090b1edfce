"""Global search of pools, slots and reservations."""

from __future__ import annotations

from django.db.models import Q
from django.urls import reverse

from lcm.domain.roles import Role
from lcm.selectors.names import by_id
from lcm.web.search import SearchHit
from scheduling.models import Pool
from scheduling.selectors.slots import search_slots, slots


def find_slots(text: str, limit: int, role: Role) -> list[SearchHit]:
    rows = search_slots(slots(), text, also=by_id(text)).order_by("pool__name", "number")[:limit]
    return [
        SearchHit(
            slot.name,
            reverse("slot_detail", args=[slot.pk]),
            " · ".join(filter(None, (slot.instance_id, slot.offering))),
            slot.state,
            slot.get_state_display(),
        )
        for slot in rows
    ]


def find_pools(text: str, limit: int, role: Role) -> list[SearchHit]:
    rows = Pool.objects.filter(Q(name__icontains=text) | by_id(text)).order_by("name")[:limit]
    return [SearchHit(pool.name, reverse("pool_detail", args=[pool.pk]), pool.description) for pool in rows]
