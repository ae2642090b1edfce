"""Pools: made, edited and chosen."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, Q

from lcm.actors import SYSTEM, Actor
from lcm.errors import InvalidInput
from lcm.services.changelog import log_change, take_changes
from lcm.services.validation import clean, save_checked
from lcm.storable import UNSTORABLE, storable, unstorable_at
from scheduling.capacity import Resources, resources_of
from scheduling.framework.configuration import DEFAULT, WrongConfiguration, read_configuration
from scheduling.models import Phase, Pool, SpotPolicy
from scheduling.runtimes.base import Market
from scheduling.runtimes.registry import runtime_for, runtime_problems

EDITABLE = (
    "description", "enabled", "runtime_settings", "spot_policy", "scheduler", "min_slots", "warm_slots",
    "max_slots", "max_leases", "cpu_cores", "memory_gb", "storage_gb", "gpu", "first_port", "last_port",
    "idle_seconds", "promised_wait", "launch_timeout", "boot_timeout", "binding_timeout", "drain_timeout",
    "terminate_timeout",
)  # fmt: skip


def create_pool(
    *, name: str, actor: Actor, system: str = "cml", runtime: str = "simulated", **fields: Any
) -> Pool:
    """A new kind of worker."""
    _refuse_unknown(fields)
    fields = _tidy(fields)
    pool = Pool(name=name, system=system, runtime=runtime, **fields)
    _check_scheduler(pool)
    _check_runtime(pool)
    with transaction.atomic():
        save_checked(pool)
        after = {"system": system, "runtime": runtime, **fields}
        log_change(pool, actor=actor, event="pool_created", message=f"pool {pool} created", after=after)
    return pool


def update_pool(*, pool: Pool, actor: Actor, reason: str = "", **changes: Any) -> Pool:
    """Change a pool's policy. Mending it ends a stop by a configuration error and any back-off."""
    _refuse_unknown(changes)
    with transaction.atomic():
        # Locked and read again: what is checked is what will be there, whoever edits at the same time.
        pool.refresh_from_db(from_queryset=Pool.objects.select_for_update())
        old, new = take_changes(pool, _tidy(changes))
        _check_scheduler(pool)
        _check_runtime(pool)
        clean(pool)
        if new or pool.stopped_reason or pool.backoff_until:
            pool.stopped_reason, pool.backoff_until, pool.failures, pool.refused_offerings = "", None, 0, {}
            resets = ["stopped_reason", "backoff_until", "failures", "refused_offerings"]
            pool.save(update_fields=[*new, *resets, "updated_at"])
            what = ", ".join(name.replace("_", " ") for name in new) or "it starts again"
            message = f"pool {pool} edited: {what}"
            log_change(
                pool, actor=actor, event="pool_edited", message=message, reason=reason, before=old, after=new
            )
    return pool


def stop_pool(*, pool: Pool, reason: str, now: datetime) -> None:
    """Launch nothing more: it would never work like this. The first reason stays until someone mends it."""
    reason = storable(reason)[:500] or "wrongly configured"
    with transaction.atomic():
        if Pool.objects.filter(pk=pool.pk, stopped_reason="").update(stopped_reason=reason):
            pool.stopped_reason = reason
            message = f"pool {pool} stopped: nothing can be launched like this"
            log_change(pool, actor=SYSTEM, event="pool_stopped", message=message, reason=reason, now=now)


def pool_for(*, name: str, system: str, asked: Resources, ports: int = 0) -> Pool:
    """The pool asked for, else the one of this system where the wait should be shortest."""
    if name:
        pool = Pool.objects.filter(name=name).first()
        if pool is None:
            raise InvalidInput({"pool": f"There is no pool “{name}”."})
        problem = _problem_with(pool, system, asked, ports)
        if problem:
            raise InvalidInput({"pool": problem})
        return pool
    if not system:
        raise InvalidInput({"pool": "Name a pool or a system."})
    waiting = Count("reservations", filter=Q(reservations__phase=Phase.PENDING))
    pools = Pool.objects.filter(system=system, enabled=True).annotate(waiting=waiting)
    able = [pool for pool in pools if not _problem_with(pool, system, asked, ports)]
    if not able:
        why = "can hold this" if pools else "is switched on"
        raise InvalidInput({"pool": f"No pool for {system} {why}."})
    return min(able, key=lambda pool: (bool(pool.stopped_reason), pool.waiting / pool.max_slots, pool.name))


def _problem_with(pool: Pool, system: str, asked: Resources, ports: int) -> str:
    """Why a pool can never hold a claim; empty when it can."""
    if not pool.enabled:
        return f"The pool {pool} is switched off."
    if system and pool.system != system:
        return f"The pool {pool} is for {pool.system}, not for {system}."
    lacking = asked.lacking_in(resources_of(pool))
    if lacking:
        return f"No slot of {pool} can ever hold this: too little {' and '.join(lacking)}."
    if ports > pool.port_count:
        return f"No slot of {pool} can ever hold this: {ports} ports asked for, a slot has {pool.port_count}."
    return ""


def _tidy(fields: dict[str, Any]) -> dict[str, Any]:
    """A scheduler as browsers send it; the usual one is kept as none, so that it follows what is usual."""
    if isinstance(fields.get("scheduler"), str):
        text = fields["scheduler"].replace("\r\n", "\n")
        fields = {**fields, "scheduler": "" if text.strip() == DEFAULT.strip() else text}
    return fields


def _check_scheduler(pool: Pool) -> None:
    try:
        read_configuration(pool.scheduler)
    except WrongConfiguration as error:
        raise InvalidInput({"scheduler": error.sentences}) from error


def _check_runtime(pool: Pool) -> None:
    wrong = unstorable_at(pool.runtime_settings, "runtime_settings")
    if wrong:
        raise InvalidInput({wrong: UNSTORABLE})
    problems = runtime_problems(pool.runtime, pool.runtime_settings)
    if not problems:
        runtime = runtime_for(pool)
        if runtime.most_slots is not None and pool.max_slots > runtime.most_slots:
            raise InvalidInput({"max_slots": _too_many(runtime.most_slots)})
        markets = {offering.market for offering in runtime.offerings()}
        if pool.spot_policy == SpotPolicy.ONLY and Market.SPOT not in markets:
            raise InvalidInput({"spot_policy": "This runtime has no spot offering."})
        if pool.spot_policy == SpotPolicy.NEVER and Market.ON_DEMAND not in markets:
            raise InvalidInput({"spot_policy": "This runtime has no on-demand offering."})
    if problems:
        raise InvalidInput(
            {f"runtime_settings.{key}" if key else "runtime": text for key, text in problems.items()}
        )


def _too_many(most: int) -> str:
    listed = "worker is" if most == 1 else "workers are"
    return f"{most} {listed} listed in the runtime settings, so there can be at most {most}."


def _refuse_unknown(fields: dict[str, Any]) -> None:
    unknown = set(fields) - set(EDITABLE)
    if unknown:
        raise InvalidInput(dict.fromkeys(sorted(unknown), "This is not a setting of a pool."))
