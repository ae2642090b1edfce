"""Routing: rules, conditions, and each event once for each rule."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from lcm.domain.errors import InvalidInput
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, Delivery, DeliveryState
from lcm.selectors.deliveries import preview_rule
from lcm.services.event_routing import route_events
from lcm.services.event_rules import create_rule, update_rule
from lcm.services.sessions import cancel_session
from lcm.services.webhooks import create_webhook, update_webhook


@pytest.fixture
def webhook(as_admin, now):
    return create_webhook(name="chat", url="https://hooks.example.org/x", actor=as_admin, now=now)[0]


@pytest.fixture
def rule(webhook, as_admin, now):
    return create_rule(name="sessions", event_types=["session.*"], webhook=webhook, actor=as_admin, now=now)


def routed():
    return list(ChangeLog.objects.filter(routed__isnull=False).values_list("routed", flat=True))


def test_an_event_that_matches_a_rule_becomes_one_delivery_however_often_it_is_routed(rule, session, now):
    while route_events(now=now):
        pass
    assert set(routed()) == {True}
    delivery = Delivery.objects.get()
    event = json.loads(delivery.payload)
    assert (delivery.type, delivery.state, delivery.next_attempt_at) == ("session.requested", "pending", now)
    assert (event["id"], event["type"]) == (str(delivery.event), "org.lcm.session.requested")
    assert event["data"]["owner"] == session.owner.username
    ChangeLog._base_manager.filter(pk=delivery.event).update(routed=False)
    assert route_events(now=now) == 1
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "matches"),
    [
        ({"pools": ["cml-eu"]}, True),
        ({"pools": ["cml-us", "cml-*"]}, True),
        ({"pools": ["cml-us"]}, False),
        ({"definitions": ["campus v*"]}, True),
        ({"definitions": ["campus"]}, False),
        ({"domains": ["academy"], "projects": ["academy / ccna"]}, True),
        ({"domains": ["academy"], "projects": ["academy / ccnp"]}, False),
        ({"severities": ["info"]}, True),
        ({"severities": ["critical"]}, False),
        ({"event_types": ["slot.*"]}, False),
        ({"enabled": False}, False),
    ],
)
def test_all_conditions_of_a_rule_must_match(changes, matches, rule, session, as_admin, now):
    update_rule(rule=rule, actor=as_admin, now=now, **changes)
    route_events(now=now)
    assert Delivery.objects.exists() is matches


def test_an_event_for_a_disabled_webhook_is_dropped_with_a_reason(rule, session, as_admin, now):
    update_webhook(webhook=rule.webhook, enabled=False, actor=as_admin, now=now)
    route_events(now=now)
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.next_attempt_at) == (DeliveryState.DROPPED, None)
    assert "disabled" in delivery.error


def test_the_number_of_queries_does_not_depend_on_the_number_of_events(
    rule, session, as_admin, now, django_assert_max_num_queries
):
    cancel_session(session=session, reason="late", actor=as_admin, now=now)
    with django_assert_max_num_queries(8):
        assert route_events(now=now) >= 2
    assert Delivery.objects.count() == 2


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"event_types": []}, "event_types"),
        ({"event_types": ["session.unknown"]}, "event_types"),
        ({"severities": ["loud"]}, "severities"),
        ({"pools": [""]}, "pools"),
        ({"pools": ["p"] * 51}, "pools"),
        ({"digest_interval": timedelta(days=999_999_999)}, "digest_interval"),
    ],
)
def test_a_rule_that_cannot_match_is_refused(changes, field, rule, as_admin, now):
    with pytest.raises(InvalidInput) as error:
        update_rule(rule=rule, actor=as_admin, now=now, **changes)
    assert list(error.value.fields) == [field]


def test_the_preview_counts_the_events_of_the_last_seven_days(rule, session, as_admin, now):
    cancel_session(session=session, reason="late", actor=as_admin, now=now)
    found = preview_rule(rule, now=now)
    assert (found.count, found.limit) == (2, 0)
    assert [change.event for change, _ in found.examples] == ["session.cancelled", "session.requested"]
    assert preview_rule(rule, now=now + timedelta(days=8)).count == 0
    rule.pools = ["cml-us"]
    assert preview_rule(rule, now=now).count == 0


def test_a_preview_of_very_many_events_compares_the_newest(rule, session, as_admin, now, monkeypatch):
    monkeypatch.setattr("lcm.selectors.deliveries.PREVIEW_LIMIT", 1)
    cancel_session(session=session, reason="late", actor=as_admin, now=now)
    found = preview_rule(rule, now=now)
    assert (found.count, found.limit) == (1, 1)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_workers_that_route_at_once_create_each_delivery_once(rule, session, as_admin, now, at_once):
    cancel_session(session=session, reason="late", actor=as_admin, now=now)
    found = at_once(*[lambda: route_events(now=now)] * 4)
    while route_events(now=now):
        pass
    assert all(isinstance(each, int) for each in found), found
    assert set(routed()) == {True}
    assert Delivery.objects.count() == 2


def test_an_event_that_cannot_be_routed_is_logged_and_does_not_stop_the_others(
    rule, session_in, as_operator, now, caplog
):
    sessions = [session_in(SessionStatus.PENDING) for _ in range(4)]
    broken = ChangeLog.objects.filter(event="session.requested", object_id=str(sessions[1].pk)).get()
    ChangeLog._base_manager.filter(pk=broken.pk).update(before=["no object"])
    while route_events(now=now):
        pass
    assert set(routed()) == {True}
    events = ChangeLog.objects.filter(event="session.requested").exclude(pk=broken.pk)
    assert set(Delivery.objects.values_list("event", flat=True)) >= {event.pk for event in events}
    assert not Delivery.objects.filter(event=broken.pk).exists()
    assert [record.change for record in caplog.records if record.msg == "event_not_routed"] == [broken.pk]
