"""A pool's supply of workers as text: its offerings, or its listed workers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from lcm.web.wording import amount_text
from scheduling.capacity.offerings import OfferingStatus, offering_statuses
from scheduling.capacity.runtimes.base import ListedWorker, RuntimeFailure
from scheduling.capacity.runtimes.registry import runtime_for
from scheduling.models import Pool

MAX_WORKERS = 50
# Settings that have a table of their own.
TABLES = ("offerings", "workers")
# Display names; runtimes of other packages use their own name.
NAMES = {"simulated": gettext_lazy("Simulated"), "static": gettext_lazy("Static"), "ec2": "EC2", "cml": "CML"}
UNITS = {"seconds": "s", "percent": "%"}
_USER_IN_ADDRESS = re.compile(r"//[^/@\s]*@")
_SECRET = re.compile(r"password|secret|token|credential")


@dataclass(frozen=True)
class PoolSupply:
    """A pool's offerings in order, or its listed workers, or the problem with its settings."""

    offerings: Sequence[OfferingStatus] = ()
    workers: Sequence[ListedWorker] = ()
    problem: str = ""
    hidden: int = field(default=0, kw_only=True)
    # Workers that did not respond, with the time.
    failed: Mapping[str, datetime] = field(default_factory=dict, kw_only=True)

    @property
    def listed(self) -> list[tuple[ListedWorker, datetime | None]]:
        return [(worker, self.failed.get(worker.name)) for worker in self.workers]

    @property
    def refused(self) -> list[OfferingStatus]:
        return [each for each in self.offerings if each.refused_until]

    @property
    def all_refused(self) -> bool:
        return not any(each.is_open for each in self.offerings)


def supply_of(pool: Pool, *, now: datetime, most: int = MAX_WORKERS) -> PoolSupply:
    """Return the supply by the pool's settings alone, without calling the provider."""
    try:
        runtime = runtime_for(pool)
        workers = runtime.workers()
        failed = {name: datetime.fromisoformat(at) for name, at in pool.failed_workers.items()}
        hidden = max(len(workers) - most, 0)
        return PoolSupply(offering_statuses(pool, runtime, now), workers[:most], hidden=hidden, failed=failed)
    except RuntimeFailure as error:
        return PoolSupply(problem=str(error))


def supply_text(supply: PoolSupply) -> str:
    """Format the number of offerings: “2 offerings, 1 refused”."""
    if supply.problem:
        return _("invalid settings")
    if supply.workers:
        listed = len(supply.workers) + supply.hidden
        text = ngettext("%(count)s worker listed", "%(count)s workers listed", listed)
        return text % {"count": f"{listed:,}"}
    allowed, refused = sum(each.is_allowed for each in supply.offerings), len(supply.refused)
    text = ngettext("%(count)s offering", "%(count)s offerings", allowed) % {"count": f"{allowed:,}"}
    if not refused:
        return text
    return f"{text}, {ngettext('%(count)s refused', '%(count)s refused', refused) % {'count': refused}}"


def display_name(name: str) -> str:
    """Return the display name of a runtime or system: “CML”."""
    return str(NAMES.get(name, name))


def settings_shown(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return each setting with its formatted value; without passwords and settings that a table shows."""
    for name, value in settings.items():
        if name not in TABLES:
            yield name, _("set, not shown") if _SECRET.search(name) else _shown(name, value)


def _shown(name: str, value: object) -> str:
    if value is None or value in ("", [], {}):
        return _("none")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, int | float):
        return f"{amount_text(Decimal(str(value)))} {UNITS.get(name.rpartition('_')[2], '')}".rstrip()
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_shown(str(key), each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_shown(name, each) for each in value)
    return _USER_IN_ADDRESS.sub("//", str(value))
