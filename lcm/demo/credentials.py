"""What the living demo runs on: the address of its simulators, and a key for its controller."""

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
LIFE = timedelta(days=365)


def set_simulator_url(url: str) -> None:
    """Simulated workers answer there from now on: the port is another one after each start."""
    slots = Slot.objects.filter(pool__runtime="simulated").exclude(instance_id="")
    for slot in slots:
        Slot.objects.filter(pk=slot.pk).update(endpoint=f"{url}/{slot.instance_id}")


def write_controller_token(path: Path, *, now: datetime) -> None:
    """Keep a controller's key for the demo's pools in a file that only we can read.

    Pools that people create are for controllers of their own.
    """
    _keep_key(path, CONTROLLER, [f"pool:{name}" for name in POOLS], now)


def write_prometheus_token(path: Path, *, now: datetime) -> None:
    """Keep a key to the list of what there is to scrape in such a file."""
    _keep_key(path, PROMETHEUS, [PROMETHEUS_SCOPE], now)


def _keep_key(path: Path, name: str, scopes: list[str], now: datetime) -> None:
    found = find_token(key=path.read_text().strip(), now=now) if path.exists() else None
    if found is not None and found.scopes == scopes:
        return
    for old in ApiToken.objects.filter(name=name, revoked_at=None):
        revoke_token(token=old, actor=SYSTEM, now=now, reason="the demo starts anew")
    _, key = create_token(
        name=name,
        kind=TokenKind.CONTROLLER,
        scopes=scopes,
        expires_at=now + LIFE,
        actor=SYSTEM,
        now=now,
    )
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(key)
