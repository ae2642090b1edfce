"""Presence of processes and their metric addresses, as reported by the processes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.access import ControllerScope
from lcm.domain.actors import SYSTEM
from lcm.domain.errors import StateConflict
from lcm.models import ApiToken
from lcm.services.changelog import log_change
from observations.models import Presence, TargetKind
from observations.selectors.controllers import REMEMBERED
from scheduling.services.controller_leases import LENGTH

# A controller without heartbeat for this long is announced; restarts are shorter.
SILENT_AFTER = timedelta(minutes=5)


def save_presence(
    *,
    kind: str,
    name: str,
    address: str,
    token: ApiToken | None,
    now: datetime,
    clock_skew: Decimal | None = None,
) -> None:
    """Record that a process runs; raise StateConflict if its name belongs to another token.

    `clock_skew` is in seconds that its clock is ahead of LCM's.
    """
    fields = {"address": address[:200], "token": token, "seen_at": now, "clock_skew": clock_skew}
    row, is_new = Presence.objects.select_related("token").get_or_create(
        kind=kind, name=name[:200], defaults=fields
    )
    if is_new:
        return
    same = Presence.objects.filter(pk=row.pk, token=row.token_id)
    if row.token_id != (token and token.pk):
        _check_name_is_free(row, token, now)
        # The former token may have renewed its claim meanwhile.
        same = same.filter(seen_at=row.seen_at)
    if not same.update(**fields):
        raise _name_conflict(name)
    if row.silent_since is not None:
        _log_return(row, now)


def announce_silent_controllers(*, now: datetime) -> None:
    """Log the controllers without heartbeat, each once until its next one.

    The controllers on workers are not announced: the events of their slots report them.
    """
    silent = Presence.objects.filter(
        kind=TargetKind.CONTROLLER,
        silent_since=None,
        seen_at__gt=now - REMEMBERED,
        seen_at__lte=now - SILENT_AFTER,
        token__revoked_at=None,
    )
    for row in silent.select_related("token"):
        if row.token is None or row.token.scope.slot_id is None:
            _log_silence(row, now)


def _log_silence(row: Presence, now: datetime) -> None:
    """Log the silence, unless a heartbeat arrived or another worker logged it meanwhile."""
    same = Presence.objects.filter(pk=row.pk, silent_since=None, seen_at=row.seen_at)
    with transaction.atomic():
        if same.update(silent_since=now) and row.seen_at is not None:
            last = row.seen_at.astimezone(UTC)
            message = f"{row} is silent: no heartbeat since {last:%Y-%m-%d %H:%M:%S} UTC"
            log_change(row, actor=SYSTEM, event="controller.silent", message=message, now=now)


def _log_return(row: Presence, now: datetime) -> None:
    with transaction.atomic():
        if Presence.objects.filter(pk=row.pk, silent_since__isnull=False).update(silent_since=None):
            message = f"{row} sends heartbeats again"
            log_change(row, actor=SYSTEM, event="controller.back", message=message, now=now)


def delete_presence(*, kind: str, name: str, token: ApiToken | None, now: datetime) -> None:
    """Record that a process has ended; raise StateConflict if its name belongs to another token.

    The name of a controller stays with its token; otherwise another token could take it before the controller
    restarts.
    """
    row = Presence.objects.select_related("token").filter(kind=kind, name=name[:200]).first()
    if row is None:
        return
    if row.token_id != (token and token.pk):
        _check_name_is_free(row, token, now)
    same = Presence.objects.filter(pk=row.pk, token=row.token_id)
    same.update(token=token, address="", seen_at=None, clock_skew=None, silent_since=None)


def _check_name_is_free(row: Presence, token: ApiToken | None, now: datetime) -> None:
    """Reject a name whose token is still valid, unless its controller is silent and shares a pool.

    A new token of the same controller takes over the name at once after a rotation, and otherwise when the
    leases of the former token have expired. A token for other pools never does, nor can a worker's key take
    the name of a controller of its pool or of another worker.
    """
    former = row.token
    if former is None or former.revoked_at is not None or former.expires_at <= now:
        return
    is_alive = row.seen_at is not None and row.seen_at > now - LENGTH
    if is_alive or token is None or not _serve_same_pools(former.scope, token.scope):
        raise _name_conflict(row.name)


def _serve_same_pools(one: ControllerScope, other: ControllerScope) -> bool:
    return one.slot_id == other.slot_id and not set(one.pools).isdisjoint(other.pools)


def _name_conflict(name: str) -> StateConflict:
    text = _(
        "The name “%(name)s” belongs to the token of another controller. Give this controller another name, "
        "or revoke that token."
    )
    return StateConflict(text % {"name": name})
