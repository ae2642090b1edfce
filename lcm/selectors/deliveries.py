"""Queries of webhooks, rules, the delivery log and the events that a rule matches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, QuerySet

from lcm.events.catalog import EventData, events_data
from lcm.events.rule_matching import RuleMatcher
from lcm.models import ChangeLog, Delivery, DeliveryState, EventRule, Webhook

PREVIEW_PERIOD = timedelta(days=7)
PREVIEW_LIMIT = 2_000
EXAMPLES = 3


def webhooks() -> QuerySet[Webhook]:
    return Webhook.objects.select_related("owner")


def rules() -> QuerySet[EventRule]:
    return EventRule.objects.select_related("webhook")


def deliveries() -> QuerySet[Delivery]:
    return Delivery.objects.select_related("webhook", "rule", "recipient")


def queue_length() -> tuple[int, datetime | None]:
    """Return the number of pending deliveries and the time of the oldest."""
    found = Delivery.objects.filter(state=DeliveryState.PENDING).aggregate(
        count=Count("pk"), oldest=Min("created_at")
    )
    return found["count"], found["oldest"]


def oldest_event_to_route() -> datetime | None:
    """Return the time of the oldest event that was not compared with the rules yet."""
    event = ChangeLog.objects.filter(routed=False).order_by("pk").only("at").first()
    return event and event.at


@dataclass(frozen=True)
class RulePreview:
    """The events of the last days that a rule would have matched."""

    count: int
    examples: list[tuple[ChangeLog, EventData]]
    # Only this many of the newest events were compared; 0 if all were.
    limit: int = 0


def preview_rule(rule: EventRule, *, now: datetime) -> RulePreview:
    """Compare a rule with the newest events of the last 7 days."""
    matcher = RuleMatcher(rule)
    events = ChangeLog.objects.filter(event__in=sorted(matcher.types), at__gte=now - PREVIEW_PERIOD)
    changes = list(events.order_by("-at", "-id")[: PREVIEW_LIMIT + 1])
    is_limited, changes = len(changes) > PREVIEW_LIMIT, changes[:PREVIEW_LIMIT]
    found = [
        (change, data)
        for change, data in zip(changes, events_data(changes), strict=True)
        if matcher.matches(change.event, data)
    ]
    return RulePreview(len(found), found[:EXAMPLES], PREVIEW_LIMIT if is_limited else 0)
