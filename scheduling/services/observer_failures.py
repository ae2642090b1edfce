"""Events about observers and lifecycle handlers that are late, fail or recover."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from lcm.domain.actors import SYSTEM
from lcm.services.changelog import log_change
from scheduling.models import Observer
from scheduling.selectors.observers import FailingObserver, failing_observers, observer_names
from scheduling.services.pool_announcements import SETTLED


def announce_failing_observers(*, now: datetime) -> None:
    """Log when an observer becomes late or fails, and when it has recovered.

    An observer that never ran is not announced: after an installation none has run.
    """
    failing = {each.name: each for each in failing_observers(now)}
    rows = {row.name: row for row in Observer.objects.filter(failing_announced_at__isnull=False)}
    for name, each in failing.items():
        if name not in rows and each.since is not None:
            _announce(each, now)
    for name in rows.keys() & set(observer_names()) - failing.keys():
        _announce_recovery(rows[name], now)


def _announce(found: FailingObserver, now: datetime) -> None:
    event, message, reason = "observer.late", f"observer {found.name} is late", ""
    if found.error:
        event, message, reason = "observer.failed", f"observer {found.name} failed", found.error
    row = Observer(name=found.name)
    with transaction.atomic():
        Observer.objects.bulk_create([row], ignore_conflicts=True)
        healthy = Observer.objects.filter(pk=row.pk, failing_announced_at=None)
        if healthy.update(failing_announced_at=now):
            after = {"since": found.since, "interval_seconds": found.interval.total_seconds()}
            log_change(row, actor=SYSTEM, event=event, message=message, reason=reason, after=after, now=now)


def _announce_recovery(row: Observer, now: datetime) -> None:
    """Log that an observer works again. A flapping observer is logged twice in `SETTLED` at most."""
    since = row.failing_announced_at
    if since is None or since > now - SETTLED:
        return
    with transaction.atomic():
        if Observer.objects.filter(pk=row.pk, failing_announced_at=since).update(failing_announced_at=None):
            message = f"observer {row} runs as planned again"
            log_change(row, actor=SYSTEM, event="observer.recovered", message=message, now=now)
