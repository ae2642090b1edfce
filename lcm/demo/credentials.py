"""Simulator URL and API tokens of the live demo."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from lcm.demo.names import POOLS
from lcm.domain.access import PROMETHEUS_SCOPE
from lcm.domain.actors import SYSTEM
from lcm.models import ApiToken, TokenKind
from lcm.services.tokens import create_token, find_token, revoke_token
from scheduling.models import Slot

CONTROLLER = "demo-controller"
PROMETHEUS = "demo-prometheus"
LIFETIME = timedelta(days=365)


def set_simulator_url(url: str) -> None:
    """Point simulated workers at this URL, because the port changes on each start."""
    slots = Slot.objects.filter(pool__runtime="simulated").exclude(instance_id="")
    for slot in slots:
        Slot.objects.filter(pk=slot.pk).update(endpoint=f"{url}/{slot.instance_id}")


def write_controller_token(path: Path, *, now: datetime) -> None:
    """Write a controller token for the demo's pools to a file that only this user can read.

    Pools created by users need controllers of their own.
    """
    _write_token(path, CONTROLLER, [f"pool:{name}" for name in POOLS], now)


def write_prometheus_token(path: Path, *, now: datetime) -> None:
    """Write a token for the list of Prometheus targets to a file that only this user can read."""
    _write_token(path, PROMETHEUS, [PROMETHEUS_SCOPE], now)


def _write_token(path: Path, name: str, scopes: list[str], now: datetime) -> None:
    found = find_token(key=path.read_text().strip(), now=now) if path.exists() else None
    if found is not None and found.scopes == scopes:
        return
    for old in ApiToken.objects.filter(name=name, revoked_at=None):
        revoke_token(token=old, actor=SYSTEM, now=now, reason="the demo was restarted")
    _, key = create_token(
        name=name,
        kind=TokenKind.CONTROLLER,
        scopes=scopes,
        expires_at=now + LIFETIME,
        actor=SYSTEM,
        now=now,
    )
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(key)
