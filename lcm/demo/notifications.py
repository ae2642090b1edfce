"""Watched objects, a rule and inboxes of the demo."""

from __future__ import annotations

from datetime import datetime, timedelta

from lcm.demo.people import DEMO_LOGINS
from lcm.domain.actors import SYSTEM
from lcm.models import ChangeLog, Channel, Delivery, LabletDefinition, User
from lcm.services.event_routing import BATCH, route_events
from lcm.services.event_rules import create_rule
from lcm.services.subscriptions import watch_object
from scheduling.models import Pool, Slot

# Entries older than this are read.
READ_AFTER = timedelta(days=14)
KEPT = timedelta(days=29)


def make_notifications(*, now: datetime) -> None:
    """Fill the inboxes with what happened so far, each entry with the time of its event."""
    admin, operator, viewer = (User.objects.get(username=name) for name, *_ in DEMO_LOGINS)
    watched = [
        *((admin, pool) for pool in Pool.objects.order_by("name")[:2]),
        *((operator, slot) for slot in Slot.objects.order_by("pool__name", "number")[:3]),
        *((viewer, definition) for definition in LabletDefinition.objects.order_by("name")[:2]),
    ]
    for user, obj in watched:
        watch_object(user=user, obj=obj, now=now)
    create_rule(
        name="Failures",
        event_types=["session.failed", "session.interrupted", "slot.failed", "pool.stopped"],
        channel=Channel.INBOX,
        recipients=["role:Admin", "role:Operator"],
        actor=SYSTEM,
        now=now,
    )
    while route_events(now=now) == BATCH:
        pass
    entries = list(Delivery.objects.filter(channel=Channel.INBOX))
    times = dict(ChangeLog.objects.filter(pk__in={entry.event for entry in entries}).values_list("pk", "at"))
    for entry in entries:
        at = times[entry.event or 0]
        entry.created_at = max(at, now - KEPT)
        entry.read_at = entry.created_at + READ_AFTER if at < now - READ_AFTER else None
    Delivery.objects.bulk_update(entries, ["created_at", "read_at"], batch_size=500)
