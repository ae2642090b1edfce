"""Choice of the pool of a session or reservation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Any

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from lcm.domain.allocation import allocate_to_nodes
from lcm.domain.errors import InvalidInput
from lcm.domain.resources import Amounts, Resource
from lcm.models import LabletDefinition
from lcm.models.definitions import Placement
from lcm.models.messages import translated
from lcm.web.wording import amount_text, list_text, plural_number
from scheduling.models import Phase, Pool, Reservation
from scheduling.selectors.lead_time import is_queued
from scheduling.selectors.new_slots import is_spot_only, pools_with_labels
from scheduling.selectors.pools import pools_of


def choose_pool(
    *,
    name: str,
    system: str,
    requested: Amounts,
    ports: int = 0,
    preemptible: bool = False,
    labels: Mapping[str, str] | None = None,
    now: datetime,
) -> Pool:
    """Return the requested pool, else the one of this system with the shortest expected wait.

    Pools without a slot with the labels come last: a slot can be labelled at any time.
    """
    if name:
        pool = Pool.objects.filter(name=name).first()
        if pool is None:
            raise InvalidInput({"pool": _("There is no pool “%(name)s”.") % {"name": name}})
        problem = _problem_with(pool, system, requested, ports, preemptible)
        if problem:
            raise InvalidInput({"pool": problem})
        return pool
    if not system:
        raise InvalidInput({"pool": _("Specify a pool or a system.")})
    queue = Reservation.objects.filter(is_queued(now), pool=OuterRef("pk"), phase=Phase.PENDING).order_by()
    waiting = Subquery(queue.values("pool").annotate(claims=Count("*")).values("claims"))
    pools = Pool.objects.filter(system=system, enabled=True).annotate(waiting=Coalesce(waiting, 0))
    problems = {pool: _problem_with(pool, system, requested, ports, preemptible) for pool in pools}
    eligible = [pool for pool, problem in problems.items() if not problem]
    if not eligible:
        raise InvalidInput({"pool": _no_pool_message(system, problems, requested)})
    eligible = pools_with_labels(eligible, labels or {}) or eligible
    return min(
        eligible, key=lambda pool: (bool(pool.stopped_reason), pool.waiting / pool.max_slots, pool.name)
    )


def _no_pool_message(system: str, problems: Mapping[Any, str], requested: Amounts) -> str:
    """Return the message if no pool fits: the resource with the largest slot, or that only spot would do."""
    if not problems:
        return _("No pool for %(system)s is enabled.") % {"system": system}
    if text := too_large_text(system, problems, requested):
        return text
    spot = (problem for pool, problem in problems.items() if problem == _spot_only(pool))
    text = _("No pool for %(system)s can hold this.") % {"system": system}
    return " ".join([text, *islice(spot, 1)])


def too_large_text(system: str, pools: Collection[Pool], requested: Amounts) -> str:
    """Return which resources no slot has enough of, and the largest; empty if a pool has enough of each."""
    if not pools or any(not requested.lacking_in(pool.amounts) for pool in pools):
        return ""
    lacking = requested.lacking_in(Amounts.most(pool.amounts for pool in pools))
    text = _("No %(system)s pool has a slot with %(amount)s; the largest has %(most)s.")
    parts = [
        text
        % {
            "system": system,
            "amount": amount_in_sentence(each, requested[each.name]),
            "most": amount_text(max(pool.amounts[each.name] for pool in pools)),
        }
        for each in lacking
    ]
    if not parts:
        wanted = [amount_in_sentence(each, amount) for each, amount in requested if amount]
        text = _("No %(system)s pool has a slot with %(amounts)s together.")
        parts = [text % {"system": system, "amounts": list_text(wanted)}]
    return " ".join(parts)


def _lacking_text(pool: Pool, requested: Amounts) -> str:
    text = _("No slot of %(pool)s has %(amount)s; the largest has %(most)s.")
    sentences = (
        text
        % {
            "pool": pool,
            "amount": amount_in_sentence(each, requested[each.name]),
            "most": amount_text(pool.amounts[each.name]),
        }
        for each in requested.lacking_in(pool.amounts)
    )
    return " ".join(sentences)


def requirement_warning(
    definition: LabletDefinition, requirements: Mapping[str, Decimal], pools: Collection[Pool] | None = None
) -> str:
    """Return which new requirements no slot could hold; empty if a slot could, or if there is no pool.

    `pools`: the pools of the definition, if they are loaded already.
    """
    requested = Amounts.read({**definition.revision.requirements, **requirements})
    if definition.placement == Placement.SPREAD:
        parts = allocate_to_nodes(definition.nodes, requested.as_dict())
        requested = Amounts.most(Amounts.read(part) for part in parts)
    found = pools_of(definition) if pools is None else pools
    if definition.pool:
        return " ".join(_lacking_text(pool, requested) for pool in found)
    return too_large_text(definition.system, found, requested)


def amount_in_sentence(resource: Resource, amount: Decimal) -> str:
    """Return an amount within a sentence: `900 cores`, `2 GB memory`."""
    text = translated(resource.amount(amount_text(amount), plural_number(amount)))
    return text if resource.named_by_unit else f"{text} {translated(resource.word)}"


def _spot_only(pool: Pool) -> str:
    text = _("The pool %(pool)s has spot slots only, and this session is not preemptible.")
    return text % {"pool": pool}


def _problem_with(pool: Pool, system: str, requested: Amounts, ports: int, preemptible: bool) -> str:
    """Return why a pool can never hold a reservation; empty if it can."""
    if not pool.enabled:
        return _("The pool %(pool)s is disabled.") % {"pool": pool}
    if system and pool.system != system:
        text = _("The pool %(pool)s is for %(own)s, not for %(system)s.")
        return text % {"pool": pool, "own": pool.system, "system": system}
    if text := _lacking_text(pool, requested):
        return text
    if ports > pool.port_count:
        text = _("No slot of %(pool)s can ever hold this: ports requested: %(ports)s, per slot: %(most)s.")
        return text % {"pool": pool, "ports": ports, "most": pool.port_count}
    if not preemptible and is_spot_only(pool):
        return _spot_only(pool)
    return ""
