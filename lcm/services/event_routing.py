"""Route events: compare new events with rules, owners and watchers, and create their deliveries."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction

from lcm.domain.roles import role_of
from lcm.events.catalog import EventData, cloud_event, event_types, events_data
from lcm.events.mail_client import mail_is_configured
from lcm.events.personal import OWN_TYPES, WATCHED, wants
from lcm.events.rule_matching import RuleMatcher
from lcm.events.webhook_body import request_body
from lcm.models import Cause, ChangeLog, Channel, Delivery, DeliveryState, EventRule, User, WebhookFormat
from lcm.selectors.recipients import People, Recipient, role_named, watchers_of
from lcm.services.webhooks import WAS_DISABLED

logger = logging.getLogger(__name__)

BATCH = 500
INSERTED_AT_ONCE = 2_000
# Deliveries are retried for this long.
RETRY_PERIOD = timedelta(hours=24)
# Personal events within this time become one e-mail.
PERSONAL_DIGEST = timedelta(minutes=1)
NO_MAIL = "E-mail is not configured: EMAIL_URL is not set."
# Rule, address, and whether the e-mail is personal: deliveries with the same key become one e-mail.
MailKey = tuple[UUID | None, str, bool]


def route_events(*, now: datetime) -> int:
    """Route the oldest events that are not routed; return how many.

    Workers that route at the same time skip each other's events. Deliveries and the mark of the events are
    one transaction. A rule sends an event to its webhook once; an address and an inbox get an event once,
    whatever the number of rules and subscriptions.
    """
    # The table rejects updates through its manager, because entries are never changed. The mark is not part
    # of an entry.
    rows = ChangeLog._base_manager
    with transaction.atomic():
        waiting = rows.select_for_update(skip_locked=True).filter(routed=False).order_by("pk")
        changes: list[ChangeLog] = list(waiting[:BATCH])
        if changes:
            deliveries = _routable_deliveries(changes, now)
            Delivery.objects.bulk_create(deliveries, batch_size=INSERTED_AT_ONCE, ignore_conflicts=True)
            rows.filter(pk__in=[change.pk for change in changes]).update(routed=True)
    return len(changes)


def _routable_deliveries(changes: Sequence[ChangeLog], now: datetime) -> list[Delivery]:
    """Return the deliveries of events; log an event that cannot be routed, and route the others."""
    try:
        return _deliveries(changes, now)
    except DatabaseError:
        raise
    except Exception:
        if len(changes) == 1:
            logger.exception("event_not_routed", extra={"change": changes[0].pk, "type": changes[0].event})
            return []
        middle = len(changes) // 2
        return _routable_deliveries(changes[:middle], now) + _routable_deliveries(changes[middle:], now)


def _deliveries(changes: Sequence[ChangeLog], now: datetime) -> list[Delivery]:
    rules = EventRule.objects.filter(enabled=True).select_related("webhook").order_by("created_at", "pk")
    matchers = [RuleMatcher(rule) for rule in rules]
    watchers = watchers_of(changes)
    wanted = frozenset(OWN_TYPES).union(*(matcher.types for matcher in matchers))
    changes = [
        change
        for change in changes
        if change.event in event_types()
        and (change.event in wanted or (change.object_type, change.object_id) in watchers)
    ]
    routing = _Routing(matchers, watchers, now)
    events = list(zip(changes, events_data(changes), strict=True))
    routing.read_people(events)
    found = [delivery for change, data in events for delivery in routing.deliveries(change, data)]
    _join_mails(found, now)
    return found


@dataclass
class _Routing:
    """The rules, watchers and people with which a batch of events is compared."""

    matchers: list[RuleMatcher]
    watchers: Mapping[tuple[str, str], list[UUID]]
    now: datetime
    people: People = field(default_factory=People)
    recipients: dict[UUID, list[Recipient]] = field(default_factory=dict)

    def read_people(self, events: Sequence[tuple[ChangeLog, EventData]]) -> None:
        rules = [matcher.rule for matcher in self.matchers]
        named = {text for rule in rules for text in rule.recipients}
        owners = {owner for change, data in events if (owner := _owner(change, data))}
        self.people = People(
            names=owners | named,
            keys={key for keys in self.watchers.values() for key in keys},
            roles={role for text in named if (role := role_named(text))},
        )
        self.recipients = {rule.pk: self.people.of_rule(rule) for rule in rules}

    def deliveries(self, change: ChangeLog, data: EventData) -> list[Delivery]:
        """Return the deliveries of an event; the first of several reasons to notify a person counts."""
        found: dict[tuple[str, object], Delivery] = {}
        for delivery in self._candidates(change, data):
            target = delivery.rule_id if delivery.webhook else delivery.address or delivery.recipient_id
            found.setdefault((delivery.channel, target), delivery)
        if found:
            event = cloud_event(change, data)
            for delivery in found.values():
                delivery.event = change.pk
                set_event(delivery, change.event, event)
        return list(found.values())

    def _candidates(self, change: ChangeLog, data: EventData) -> Iterator[Delivery]:
        for matcher in self.matchers:
            if matcher.matches(change.event, data):
                yield from rule_deliveries(matcher.rule, self.recipients[matcher.rule.pk], self.now)
        if owner := self.people.by_name.get(_owner(change, data)):
            yield from self._personal(owner, change.event, Cause.OWNER)
        for key in self.watchers.get((change.object_type, change.object_id), ()):
            if watcher := self.people.by_key.get(key):
                yield from self._personal(watcher, WATCHED, Cause.WATCHER)

    def _personal(self, person: User, name: str, cause: Cause) -> Iterator[Delivery]:
        """Return what a person chose to get; people without a role have no pages."""
        if not role_of(person):
            return
        if wants(person, Channel.INBOX, name):
            yield inbox_delivery(person, self.now, cause=cause)
        if wants(person, Channel.EMAIL, name):
            yield mail_delivery(Recipient(person, person.email), PERSONAL_DIGEST, self.now, cause=cause)


def set_event(delivery: Delivery, name: str, event: Mapping[str, Any]) -> None:
    """Set type and payload of a new delivery."""
    form = delivery.webhook.format if delivery.webhook else WebhookFormat.CLOUDEVENTS
    delivery.type, delivery.payload = name, request_body(event, form)


def _owner(change: ChangeLog, data: EventData) -> str:
    """Return the user name of the owner who may get an event without a rule; empty if there is none."""
    return (getattr(data, "owner", None) or "") if change.event in OWN_TYPES else ""


def rule_deliveries(rule: EventRule, recipients: Sequence[Recipient], now: datetime) -> Iterator[Delivery]:
    """Return the unsaved deliveries of one event by a rule; type and payload are not set."""
    if rule.channel == Channel.WEBHOOK:
        yield _webhook_delivery(rule, now)
    for recipient in recipients:
        if rule.channel == Channel.EMAIL:
            yield mail_delivery(recipient, rule.digest_interval, now, rule=rule)
        elif recipient.person:
            yield inbox_delivery(recipient.person, now, rule=rule)


def _webhook_delivery(rule: EventRule, now: datetime) -> Delivery:
    webhook = rule.webhook
    assert webhook is not None
    problem = "" if webhook.enabled else WAS_DISABLED
    return Delivery(rule=rule, webhook=webhook, **_state(problem, now, now + RETRY_PERIOD), created_at=now)


def inbox_delivery(person: User, now: datetime, **fields: Any) -> Delivery:
    return Delivery(
        channel=Channel.INBOX,
        recipient=person,
        state=DeliveryState.DELIVERED,
        retry_until=now,
        created_at=now,
        **fields,
    )


def mail_delivery(recipient: Recipient, wait: timedelta, now: datetime, **fields: Any) -> Delivery:
    """Return an e-mail that is due after a while, or is dropped because it cannot be sent."""
    problem = ""
    if not mail_is_configured():
        problem = NO_MAIL
    elif not recipient.address:
        problem = f"{recipient.person} has no e-mail address."
    return Delivery(
        channel=Channel.EMAIL,
        recipient=recipient.person,
        address=recipient.address,
        **_state(problem, now + wait, now + wait + RETRY_PERIOD),
        created_at=now,
        **fields,
    )


def _state(problem: str, due: datetime, retry_until: datetime) -> dict[str, Any]:
    return {
        "state": DeliveryState.DROPPED if problem else DeliveryState.PENDING,
        "error": problem,
        "next_attempt_at": None if problem else due,
        "retry_until": retry_until,
    }


def _join_mails(deliveries: Sequence[Delivery], now: datetime) -> None:
    """Give new e-mails the time of the one that waits for the same address, so that they become one."""
    mails = [
        each for each in deliveries if each.channel == Channel.EMAIL and each.state == DeliveryState.PENDING
    ]
    if not mails:
        return
    waiting = Delivery.objects.filter(
        channel=Channel.EMAIL,
        state=DeliveryState.PENDING,
        attempt_count=0,
        next_attempt_at__gt=now,
        address__in={mail.address for mail in mails},
    ).defer("payload")
    due: dict[MailKey, datetime] = {}
    for mail in [*waiting, *mails]:
        assert mail.next_attempt_at is not None
        key = mail_key(mail)
        mail.next_attempt_at = due[key] = min(due.get(key, mail.next_attempt_at), mail.next_attempt_at)


def mail_key(mail: Delivery) -> MailKey:
    return mail.rule_id, mail.address, mail.cause != Cause.RULE
