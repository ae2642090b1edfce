"""FilterSets of webhooks, rules, the delivery log and the inbox, shared by pages and API."""

from __future__ import annotations

from typing import Any

import django_filters as df
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from lcm.events.catalog import event_types
from lcm.models import Channel, Delivery, DeliveryState, EventRule, User, Webhook
from lcm.web.filters import ChoicesFilter, FlagFilter, ObjectFilter, SearchFilter
from lcm.web.period_filters import PeriodFilter, ends_of_period

WEBHOOK_STATES = [("enabled", _("Enabled")), ("failing", _("Failing")), ("disabled", _("Disabled"))]
_IN_STATE = {
    "enabled": Q(enabled=True, failing_since=None),
    "failing": Q(enabled=True, failing_since__isnull=False),
    "disabled": Q(enabled=False),
}


class WebhookFilter(df.FilterSet):
    q = SearchFilter("name", "url")
    state = ChoicesFilter(choices=WEBHOOK_STATES, label=_("State"), method="in_state")

    class Meta:
        model = Webhook
        fields: list[str] = []

    def in_state(self, qs: QuerySet[Webhook], name: str, value: list[str]) -> QuerySet[Webhook]:
        found = Q()
        for state in value:
            found |= _IN_STATE[state]
        return qs.filter(found)


class RuleFilter(df.FilterSet):
    q = SearchFilter("name", "webhook__name")
    channel = ChoicesFilter(choices=Channel.choices, label=_("Channel"))
    enabled = FlagFilter(label=_("Enabled"), field_name="enabled")
    webhook = ObjectFilter(Webhook, field_name="webhook_id", label=_("Webhook"))

    class Meta:
        model = EventRule
        fields: list[str] = []


def _type_choices() -> list[tuple[str, Any]]:
    return [(name, kind.title) for name, kind in event_types().items()]


def event_title(name: str) -> Any:
    """Return the title of an event type, or the name of a type that no longer exists."""
    return event_types()[name].title if name in event_types() else name


class DeliveryFilter(df.FilterSet):
    q = SearchFilter("type", "error", "address", "recipient__username")
    channel = ChoicesFilter(choices=Channel.choices, label=_("Channel"))
    state = ChoicesFilter(choices=DeliveryState.choices, label=_("State"))
    type = ChoicesFilter(choices=_type_choices, label=_("Event type"))
    webhook = ObjectFilter(Webhook, field_name="webhook_id", label=_("Webhook"))
    rule = ObjectFilter(EventRule, field_name="rule_id", label=_("Rule"))
    recipient = ObjectFilter(User, field_name="recipient_id", label=_("Recipient"))
    created = PeriodFilter(field_name="created_at", label=_("Created"))
    created_from, created_to = ends_of_period("created_at", menu="created")

    class Meta:
        model = Delivery
        fields: list[str] = []


class InboxFilter(df.FilterSet):
    q = SearchFilter("payload")
    read = FlagFilter(label=_("State"), method="is_read", yes=_("Read"), no=_("Unread"))
    type = ChoicesFilter(choices=_type_choices, label=_("Event type"))
    created = PeriodFilter(field_name="created_at", label=_("Time"))
    created_from, created_to = ends_of_period("created_at", menu="created")

    class Meta:
        model = Delivery
        fields: list[str] = []

    def is_read(self, qs: QuerySet[Delivery], name: str, value: str) -> QuerySet[Delivery]:
        return qs.filter(read_at__isnull=value == "false")
