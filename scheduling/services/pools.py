"""Pools: create, update, choose and delete."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from lcm.db.bulk import delete_in_batches, update_rows
from lcm.domain.actors import SYSTEM, Actor
from lcm.domain.errors import InUse, InvalidInput, NotFound
from lcm.domain.lifecycle import FINAL
from lcm.domain.resources import RESOURCE_NAMES
from lcm.domain.storable_text import UNSTORABLE, find_unstorable, remove_unstorable
from lcm.models import LabletSession
from lcm.services.changelog import apply_changes, log_change, loggable_fields
from lcm.services.validation import clean_and_save, clean_model, delete_if_unused, require_reason
from lcm.web.wording import clock_text, count_text
from scheduling.capacity.runtimes.addresses import is_reachable_from_other_hosts, normalized_address
from scheduling.capacity.runtimes.base import ORPHAN_GRACE, ListedWorker, Market, RuntimeFailure
from scheduling.capacity.runtimes.registry import runtime_class, runtime_for, runtime_problems
from scheduling.models import (
    ACTIVE_PHASES,
    AttemptOutcome,
    LaunchAttempt,
    Phase,
    Pool,
    Reservation,
    Slot,
    SlotState,
    SpotPolicy,
)
from scheduling.placement.framework.configuration import (
    DEFAULT_CONFIGURATION,
    InvalidConfiguration,
    read_configuration,
)
from scheduling.selectors.lead_time import pool_lead_time


def update_queue_entry_times(pool: Pool) -> None:
    """Recompute the queue entry of all waiting sessions; locks in the same order as ending a session."""
    lead = pool_lead_time(pool)
    with transaction.atomic():
        waiting = Reservation.objects.filter(pool=pool, phase=Phase.PENDING).exclude(session=None)
        list(waiting.select_for_update().order_by("pk").values_list("pk"))
        changed: list[tuple[UUID, datetime | None]] = []
        for key, old_entry, created, starts in waiting.values_list(
            "pk", "joins_queue_at", "created_at", "session__starts_at"
        ):
            entry = starts - lead if starts - lead > created else None
            if entry != old_entry:
                changed.append((key, entry))
        update_rows(Reservation, ["joins_queue_at"], changed)


DELETED_AT_ONCE = 2_000
EDITABLE = (
    "description", "enabled", "runtime_settings", "spot_policy", "scheduler", "min_slots", "warm_slots",
    "max_slots", "max_leases", *RESOURCE_NAMES, "first_port", "last_port",
    "idle_seconds", "target_wait_seconds", "launch_timeout", "boot_timeout", "binding_timeout",
    "drain_timeout", "terminate_timeout",
)  # fmt: skip
BACKOFF_RESET = {
    "stopped_reason": "", "stopped_at": None, "backoff_until": None, "backoff_since": None, "failures": 0,
}  # fmt: skip


def create_pool(
    *,
    name: str,
    actor: Actor,
    system: str = "cml",
    runtime: str = "simulated",
    now: datetime | None = None,
    **fields: Any,
) -> Pool:
    """Create a pool."""
    _reject_unknown(fields)
    fields = _normalized(fields)
    pool = Pool(name=name, system=system, runtime=runtime, **fields)
    pool.created_at = now or pool.created_at
    _check_scheduler(pool)
    _check_runtime(pool)
    _check_workers(pool)
    with transaction.atomic():
        clean_and_save(pool)
        after = {"system": system, "runtime": runtime, **fields}
        message = f"pool {pool} created"
        log_change(pool, actor=actor, event="pool.created", message=message, after=after, now=now)
    return pool


def update_pool(*, pool: Pool, actor: Actor, reason: str = "", **changes: Any) -> Pool:
    """Change a pool's policy; far-reaching changes need a reason.

    A change of the settings resets a stop by a configuration error and any back-off.
    """
    _reject_unknown(changes)
    with transaction.atomic():
        # Lock and reload, so that concurrent edits are validated together.
        pool.refresh_from_db(from_queryset=Pool.objects.select_for_update())
        old, new = apply_changes(pool, _normalized(changes))
        check_pool(pool, new)
        if _needs_reason(pool, old):
            require_reason(reason)
        if new or pool.stopped_reason or pool.backoff_until:
            for name, value in BACKOFF_RESET.items():
                setattr(pool, name, value)
            pool.refused_offerings, pool.failed_workers = {}, {}
            cleared = ("refused_offerings", "failed_workers")
            pool.save(update_fields=[*new, *BACKOFF_RESET, *cleared, "updated_at"])
            changed = ", ".join(name.replace("_", " ") for name in new) or "stop and back-off cleared"
            message = f"pool {pool} edited: {changed}"
            log_change(
                pool, actor=actor, event="pool.edited", message=message, reason=reason, before=old, after=new
            )
    # After the pool's lock is released: ending and recreating a reservation takes it again.
    if "scheduler" in new:
        update_queue_entry_times(pool)
    return pool


def delete_pool(*, pool: Pool, reason: str, actor: Actor, now: datetime) -> None:
    """Delete an empty pool with its slots and its ended reservations.

    Sessions, usage and the change log keep the name of the pool. If the deletion is interrupted,
    the pool stays and the next call continues.
    """
    require_reason(reason)
    _reject_unless_empty(pool, pool.slots.all(), now)
    ended = delete_in_batches(
        pool.reservations.exclude(phase__in=ACTIVE_PHASES).order_by("pk"), DELETED_AT_ONCE
    )
    with transaction.atomic():
        if not Pool.objects.select_for_update().filter(pk=pool.pk).exists():
            raise NotFound(_("The pool %(pool)s was deleted a moment ago.") % {"pool": pool})
        # Locked, so that the tick launches none of them meanwhile. New rows wait for the lock of the pool.
        # A slot that another transaction changes now counts as in use: to wait for it could deadlock.
        _reject_unless_empty(pool, pool.slots.select_for_update(skip_locked=True), now)
        ended += pool.reservations.count()
        pool.reservations.all().delete()
        pool.slots.all().delete()
        log_change(
            pool,
            actor=actor,
            event="pool.deleted",
            message=f"pool {pool} deleted with {count_text(ended, 'ended reservation')}",
            reason=reason,
            before=loggable_fields(pool),
            now=now,
        )
        delete_if_unused(pool)


def _reject_unless_empty(pool: Pool, slots: QuerySet[Slot], now: datetime) -> None:
    """Raise while a slot, a session or another holder's reservation is in use, or an orphan may appear."""
    empty = list(slots.filter(state=SlotState.EMPTY).values_list("pk", flat=True))
    active = pool.reservations.filter(phase__in=ACTIVE_PHASES)
    counts = {
        "slots": pool.slots.count() - len(empty),
        "sessions": LabletSession.objects.filter(pool=pool.name).exclude(status__in=FINAL).count(),
        "reservations": active.filter(session=None).count(),
    }
    if any(counts.values()):
        texts = {
            "slots": ngettext("%(count)s slot", "%(count)s slots", counts["slots"]),
            "sessions": ngettext("%(count)s session", "%(count)s sessions", counts["sessions"]),
            "reservations": ngettext(
                "%(count)s reservation", "%(count)s reservations", counts["reservations"]
            ),
        }
        found = [texts[name] % {"count": f"{count:,}"} for name, count in counts.items() if count]
        text = _(
            "The pool %(pool)s is not empty: %(counts)s in use. "
            "Disable the pool, end its sessions and drain its slots. Then delete it."
        )
        raise InUse(text % {"pool": pool, "counts": ", ".join(found)}, details=counts)
    _reject_while_orphans_possible(pool, now)


def _reject_while_orphans_possible(pool: Pool, now: datetime) -> None:
    """Raise while a lost launch may still have an instance: LCM terminates orphans of existing pools only."""
    runtime = runtime_class(pool.runtime)
    if not runtime.launches:
        return
    interval = timedelta(seconds=settings.CONFIG["RECONCILE_INTERVAL"])
    wait = ORPHAN_GRACE + runtime.listing_delay + interval
    lost = LaunchAttempt.objects.filter(
        slot__pool=pool, outcome=AttemptOutcome.LOST, finished_at__gt=now - wait
    )
    possible = [at + wait for at in lost.values_list("finished_at", flat=True) if at]
    if possible:
        text = ngettext(
            "The pool %(pool)s had %(count)s launch without a response. "
            "An instance may still appear, and LCM must end it. Delete the pool after %(time)s.",
            "The pool %(pool)s had %(count)s launches without a response. "
            "An instance may still appear, and LCM must end it. Delete the pool after %(time)s.",
            len(possible),
        )
        raise InUse(
            text
            % {
                "pool": pool,
                "count": f"{len(possible):,}",
                "time": clock_text(max(possible), seconds=True),
            },
            details={"lost_launches": len(possible), "possible_at": max(possible)},
        )


def check_pool(pool: Pool, changed: Collection[str]) -> None:
    """Validate a pool; raise with the fields and their problems."""
    _check_scheduler(pool)
    _check_runtime(pool)
    if "runtime_settings" in changed:
        _check_workers(pool)
    clean_model(pool)


def _needs_reason(pool: Pool, old: Mapping[str, Any]) -> bool:
    """Return whether the change disables, shrinks or reconfigures the pool; `old` has the previous values."""
    is_off = "enabled" in old and not pool.enabled
    is_smaller = pool.max_slots < old.get("max_slots", 0)
    return is_off or is_smaller or not old.keys().isdisjoint(("runtime_settings", "scheduler"))


def stop_pool(*, pool: Pool, reason: str, now: datetime) -> None:
    """Stop launching after a permanent failure. The first reason stays until the settings are corrected."""
    reason = remove_unstorable(reason)[:500] or "wrongly configured"
    with transaction.atomic():
        running = Pool.objects.filter(pk=pool.pk, stopped_reason="")
        if running.update(stopped_reason=reason, stopped_at=now):
            pool.stopped_reason, pool.stopped_at = reason, now
            message = f"pool {pool} stopped: its configuration does not allow launches"
            log_change(pool, actor=SYSTEM, event="pool.stopped", message=message, reason=reason, now=now)


def _normalized(fields: dict[str, Any]) -> dict[str, Any]:
    """Normalize line endings; store the default scheduler as empty, so that it follows later defaults."""
    if isinstance(fields.get("scheduler"), str):
        text = fields["scheduler"].replace("\r\n", "\n")
        fields = {**fields, "scheduler": "" if text.strip() == DEFAULT_CONFIGURATION.strip() else text}
    return fields


def _check_scheduler(pool: Pool) -> None:
    try:
        read_configuration(pool.scheduler)
    except InvalidConfiguration as error:
        raise InvalidInput({"scheduler": error.sentences}) from error


def _check_runtime(pool: Pool) -> None:
    wrong = find_unstorable(pool.runtime_settings, "runtime_settings")
    if wrong:
        raise InvalidInput({wrong: UNSTORABLE})
    if problems := runtime_problems(pool.runtime, pool.runtime_settings):
        raise InvalidInput(
            {f"runtime_settings.{key}" if key else "runtime": text for key, text in problems.items()}
        )
    runtime = runtime_for(pool)
    if runtime.most_slots is not None and pool.max_slots > runtime.most_slots:
        raise InvalidInput({"max_slots": _too_many(runtime.most_slots)})
    markets = {offering.market for offering in runtime.offerings()}
    if pool.spot_policy == SpotPolicy.ONLY and Market.SPOT not in markets:
        raise InvalidInput({"spot_policy": _("This runtime has no spot offering.")})
    if pool.spot_policy == SpotPolicy.NEVER and Market.ON_DEMAND not in markets:
        raise InvalidInput({"spot_policy": _("This runtime has no on-demand offering.")})
    if runtime.needs_public_url and pool.enabled:
        _check_public_url(pool)


def _check_public_url(pool: Pool) -> None:
    """Raise if new workers of the pool could not reach LCM. A disabled pool launches none."""
    address = settings.CONFIG["PUBLIC_URL"]
    if not is_reachable_from_other_hosts(address):
        text = _(
            "PUBLIC_URL is “%(address)s”. Workers of the runtime %(runtime)s cannot reach LCM there. "
            "Set PUBLIC_URL to an address of LCM that they can reach, and restart LCM."
        )
        raise InvalidInput({"runtime": text % {"address": address, "runtime": pool.runtime}})


def _check_workers(pool: Pool) -> None:
    """Raise if a listed worker is in another pool: two pools would allocate the same ports."""
    own = {normalized_address(worker.endpoint): worker for worker in runtime_for(pool).workers()}
    others = Pool.objects.filter(runtime=pool.runtime).exclude(pk=pool.pk) if own else Pool.objects.none()
    for other in others:
        for worker in _workers_of(other):
            same = own.get(normalized_address(worker.endpoint))
            if same:
                text = _("%(mine)s and %(worker)s of the pool %(pool)s have the same address: %(address)s.")
                values = {"mine": same.name, "worker": worker.name, "pool": other, "address": same.endpoint}
                raise InvalidInput({"runtime_settings.workers": text % values})


def _workers_of(pool: Pool) -> Sequence[ListedWorker]:
    try:
        return runtime_for(pool).workers()
    except RuntimeFailure:
        return ()


def _too_many(most: int) -> str:
    text = ngettext(
        "The runtime settings list %(count)s worker, so the pool can have at most %(count)s slot.",
        "The runtime settings list %(count)s workers, so the pool can have at most %(count)s slots.",
        most,
    )
    return text % {"count": most}


def _reject_unknown(fields: dict[str, Any]) -> None:
    unknown = set(fields) - set(EDITABLE)
    if unknown:
        raise InvalidInput(dict.fromkeys(sorted(unknown), _("This is not a setting of a pool.")))
