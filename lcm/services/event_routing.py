"""Route events: compare new events with the rules and create their deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from lcm.events.catalog import cloud_event, event_types, events_data
from lcm.events.rule_matching import RuleMatcher
from lcm.events.webhook_body import request_body
from lcm.models import ChangeLog, Delivery, DeliveryState, EventRule

BATCH = 500
# Deliveries are retried for this long.
RETRY_PERIOD = timedelta(hours=24)


def route_events(*, now: datetime) -> int:
    """Route the oldest events that are not routed; return how many.

    Workers that route at the same time skip each other's events. Deliveries and the mark of the events are
    one transaction, and a rule gets an event once.
    """
    # The table rejects updates through its manager, because entries are never changed. The mark is not part
    # of an entry.
    rows = ChangeLog._base_manager
    with transaction.atomic():
        waiting = rows.select_for_update(skip_locked=True).filter(routed=False).order_by("pk")
        changes: list[ChangeLog] = list(waiting[:BATCH])
        if changes:
            deliveries = list(_deliveries(changes, now))
            Delivery.objects.bulk_create(deliveries, batch_size=BATCH, ignore_conflicts=True)
            rows.filter(pk__in=[change.pk for change in changes]).update(routed=True)
    return len(changes)


def _deliveries(changes: Sequence[ChangeLog], now: datetime) -> Iterator[Delivery]:
    rules = EventRule.objects.filter(enabled=True).select_related("webhook").order_by("created_at", "pk")
    matchers = [RuleMatcher(rule) for rule in rules]
    wanted = frozenset[str]().union(*(matcher.types for matcher in matchers)) & event_types().keys()
    changes = [change for change in changes if change.event in wanted]
    for change, data in zip(changes, events_data(changes), strict=True):
        rules_of_event = [matcher.rule for matcher in matchers if matcher.matches(change.event, data)]
        if rules_of_event:
            event = cloud_event(change, data)
            for rule in rules_of_event:
                yield _delivery(change, rule, request_body(event, rule.webhook.format), now)


def _delivery(change: ChangeLog, rule: EventRule, body: str, now: datetime) -> Delivery:
    is_enabled = rule.webhook.enabled
    return Delivery(
        event=change.pk,
        type=change.event,
        rule=rule,
        webhook=rule.webhook,
        payload=body,
        state=DeliveryState.PENDING if is_enabled else DeliveryState.DROPPED,
        error="" if is_enabled else "The webhook was disabled when the event occurred.",
        next_attempt_at=now if is_enabled else None,
        retry_until=now + RETRY_PERIOD,
        created_at=now,
    )
