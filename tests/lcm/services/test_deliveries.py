"""Delivery to a real receiver: signatures, faults, back-off, leases and endpoints that are disabled."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.utils import timezone
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from lcm.domain.errors import InUse, InvalidInput, StateConflict
from lcm.events import webhook_client
from lcm.models import ChangeLog, Delivery, DeliveryAttempt, DeliveryState, Webhook
from lcm.services import deliveries, delivery_run
from lcm.services.deliveries import Attempt, claim_webhook, record_attempts, retry_delivery, send_test
from lcm.services.delivery_run import deliver_due
from lcm.services.event_routing import route_events
from lcm.services.event_rules import create_rule, delete_rule
from lcm.services.maintenance import remove_expired
from lcm.services.webhooks import (
    ROTATION_OVERLAP,
    create_webhook,
    delete_webhook,
    rotate_webhook_secret,
    update_webhook,
)
from tests.support.webhook_receiver import Reply, webhook_receiver

MINUTE = timedelta(minutes=1)


@pytest.fixture
def receiver(settings):
    settings.CONFIG["WEBHOOK_ALLOWED_NETWORKS"] = [ip_network("127.0.0.0/8")]
    with webhook_receiver() as found:
        yield found


@pytest.fixture
def created(receiver, as_admin, now):
    """A webhook of the receiver and its secret."""
    return create_webhook(name="chat", url=receiver.url, actor=as_admin, now=now)


@pytest.fixture
def webhook(created):
    return created[0]


@pytest.fixture
def test_event(webhook, as_admin, now):
    """A delivery that is due and is retried for a day."""
    delivery = send_test(webhook=webhook, event_type="session.ready", actor=as_admin, now=now)
    Delivery.objects.update(retry_until=now + timedelta(days=1))
    delivery.refresh_from_db()
    return delivery


def deliver(now):
    return deliver_due(clock=lambda: now)


def verify(secret, request):
    return Verifier(secret).verify(request.body, dict(request.headers))


def test_an_event_reaches_its_endpoint_signed_and_is_recorded(created, receiver, session, as_admin):
    webhook, secret = created
    now = timezone.now()
    rule = create_rule(
        name="all", event_types=["session.*"], pools=["cml-eu"], webhook=webhook, actor=as_admin, now=now
    )
    route_events(now=now)
    assert deliver_due(clock=timezone.now) == 1
    (request,) = receiver.requests
    event = verify(secret, request)
    delivery = Delivery.objects.get(rule=rule)
    assert event == json.loads(delivery.payload)
    assert request.headers["webhook-id"] == str(delivery.pk)
    assert request.headers["Content-Type"] == "application/cloudevents+json"
    assert (delivery.state, delivery.attempt_count) == (DeliveryState.DELIVERED, 1)
    assert DeliveryAttempt.objects.get().status == 204
    with pytest.raises(WebhookVerificationError):
        verify(secret, replace(request, body=request.body + " "))


def test_after_a_rotation_both_secrets_verify_until_the_old_one_ends(created, receiver, test_event, as_admin):
    webhook, old = created
    now = timezone.now()
    _, new = rotate_webhook_secret(webhook=webhook, reason="leaked", actor=as_admin, now=now)
    assert new != old
    deliver_due(clock=timezone.now)
    verify(old, receiver.requests[0])
    verify(new, receiver.requests[0])
    Webhook.objects.update(previous_until=now)
    retry_delivery(delivery=test_event, reason="again", actor=as_admin, now=now)
    deliver_due(clock=timezone.now)
    verify(new, receiver.requests[1])
    with pytest.raises(WebhookVerificationError):
        verify(old, receiver.requests[1])
    assert timedelta(hours=1) < ROTATION_OVERLAP


def test_a_failed_delivery_is_retried_with_growing_pauses_and_the_same_id_and_body(receiver, test_event, now):
    receiver.plan = [Reply(500, body=b"broken"), Reply(cut=True), Reply(302, {"Location": "/x"})]
    pauses, moment = [], now
    for _ in range(4):
        assert deliver(moment) == 1
        assert deliver(moment) == 0
        test_event.refresh_from_db()
        if test_event.next_attempt_at:
            pauses.append((test_event.next_attempt_at - moment).total_seconds())
            moment = test_event.next_attempt_at
    assert [4 <= pauses[0] <= 6, 24 <= pauses[1] <= 36, 96 <= pauses[2] <= 144] == [True] * 3
    assert test_event.state == DeliveryState.DELIVERED
    assert len({(each.headers["webhook-id"], each.body) for each in receiver.requests}) == 1
    attempts = list(test_event.attempts.order_by("pk"))
    assert [each.status for each in attempts] == [500, None, 302, 204]
    assert attempts[0].response == "broken"


def test_retry_after_delays_the_next_attempt_up_to_an_hour(receiver, test_event, now):
    receiver.plan = [Reply(503, {"Retry-After": "900"}), Reply(429, {"Retry-After": "999999"})]
    deliver(now)
    test_event.refresh_from_db()
    assert test_event.next_attempt_at == now + timedelta(seconds=900)
    deliver(now + timedelta(seconds=900))
    test_event.refresh_from_db()
    assert test_event.next_attempt_at == now + timedelta(seconds=900 + 3600)


def test_a_delivery_fails_for_good_when_its_time_is_over(receiver, test_event, now):
    receiver.plan = [Reply(500)]
    deliver(now + timedelta(hours=23, minutes=59, seconds=59))
    test_event.refresh_from_db()
    assert (test_event.state, test_event.error) == (
        DeliveryState.FAILED,
        "The endpoint responded 500 Internal Server Error.",
    )


def test_a_response_410_disables_the_endpoint_and_drops_what_is_pending(
    receiver, webhook, test_event, as_admin, now
):
    other = send_test(webhook=webhook, event_type="slot.ready", actor=as_admin, now=now + MINUTE)
    receiver.plan = [Reply(410)]
    deliver(now)
    webhook.refresh_from_db()
    other.refresh_from_db()
    assert (webhook.enabled, webhook.disabled_reason) == (False, "the endpoint responded 410 Gone")
    assert other.state == DeliveryState.DROPPED
    assert ChangeLog.objects.get(event="webhook.disabled").routed is False
    assert deliver(now + MINUTE) == 0
    with pytest.raises(StateConflict):
        retry_delivery(delivery=other, reason="again", actor=as_admin, now=now)
    with pytest.raises(StateConflict):
        send_test(webhook=webhook, event_type="slot.ready", actor=as_admin, now=now)


def test_an_endpoint_that_fails_for_24_hours_is_disabled_and_one_success_resets_the_time(
    receiver, webhook, as_admin, now
):
    day = timedelta(hours=24)
    replies = [
        (Reply(500), now),
        (Reply(204), now + day),
        (Reply(500), now + day),
        (Reply(500), now + 2 * day),
    ]
    states = []
    for reply, at in replies:
        receiver.plan = [reply]
        _make_event(send_test(webhook=webhook, event_type="session.ready", actor=as_admin, now=at))
        deliver(at)
        webhook.refresh_from_db()
        states.append(webhook.state)
    assert states == ["failing", "enabled", "failing", "disabled"]
    update_webhook(webhook=webhook, enabled=True, actor=as_admin, now=now)
    assert (webhook.state, webhook.failing_since, webhook.disabled_reason) == ("enabled", None, "")


def _make_event(test):
    Delivery.objects.filter(pk=test.pk).update(event=1, retry_until=test.created_at + timedelta(hours=24))


def test_a_test_that_failed_long_ago_does_not_disable_the_endpoint(receiver, webhook, as_admin, now):
    """An event that fails for the first time has 24 hours of retries."""
    receiver.plan = [Reply(500), Reply(500)]
    send_test(webhook=webhook, event_type="session.ready", actor=as_admin, now=now)
    deliver(now)
    later = now + timedelta(days=3)
    _make_event(send_test(webhook=webhook, event_type="session.ready", actor=as_admin, now=later))
    deliver(later)
    webhook.refresh_from_db()
    assert webhook.failing_since == later
    assert Delivery.objects.get(event=1).state == DeliveryState.PENDING


def test_nothing_is_sent_to_a_disabled_or_deleted_endpoint(receiver, webhook, test_event, as_admin, now):
    update_webhook(webhook=webhook, enabled=False, actor=as_admin, now=now)
    assert deliver(now) == 0
    update_webhook(webhook=webhook, enabled=True, actor=as_admin, now=now)
    retry_delivery(delivery=test_event, reason="again", actor=as_admin, now=now)
    delete_webhook(webhook=webhook, reason="unused", actor=as_admin, now=now)
    assert deliver(now) == 0
    assert not receiver.requests
    assert not Delivery.objects.exists()


@pytest.mark.parametrize("is_enabled_again", [True, False])
def test_a_delivery_that_is_routed_while_its_webhook_is_disabled_is_never_sent(
    is_enabled_again, receiver, webhook, test_event, as_admin, now
):
    update_webhook(webhook=webhook, enabled=False, actor=as_admin, now=now)
    Delivery.objects.update(state=DeliveryState.PENDING, next_attempt_at=now)
    if is_enabled_again:
        update_webhook(webhook=webhook, enabled=True, actor=as_admin, now=now)
    else:
        remove_expired(now=now)
    test_event.refresh_from_db()
    assert (test_event.state, deliver(now), receiver.requests) == (DeliveryState.DROPPED, 0, [])


def test_a_delivery_that_is_dropped_after_the_claim_is_not_sent(
    receiver, webhook, test_event, as_admin, now, monkeypatch
):
    def claim_then_disable(**arguments):
        claimed = claim_webhook(**arguments)
        if claimed:
            update_webhook(webhook=webhook, enabled=False, actor=as_admin, now=now)
        return claimed

    monkeypatch.setattr(delivery_run, "claim_webhook", claim_then_disable)
    assert deliver(now) == 0
    assert not receiver.requests


def test_a_delivery_of_a_worker_that_was_killed_is_sent_when_its_lease_ends(receiver, test_event, now):
    assert claim_webhook(now=now) is not None
    assert deliver(now + deliveries.LEASE / 2) == 0
    assert deliver(now + deliveries.LEASE) == 1
    test_event.refresh_from_db()
    assert test_event.state == DeliveryState.DELIVERED


def test_the_result_of_a_worker_that_lost_its_lease_does_not_count(webhook, test_event, now):
    old_webhook, (old,) = claim_webhook(now=now)
    new_webhook, _ = claim_webhook(now=now + deliveries.LEASE)
    failure = webhook_client.SendResult(5, error="timeout")
    record_attempts(webhook=old_webhook, attempts=[Attempt(old, failure, now)])
    test_event.refresh_from_db()
    assert (test_event.attempt_count, test_event.next_attempt_at) == (0, new_webhook.leased_until)
    assert not DeliveryAttempt.objects.exists()


def test_an_endpoint_is_claimed_by_one_worker_and_gets_its_events_in_order(
    receiver, webhook, session, as_admin, now
):
    create_rule(name="all", event_types=["*"], webhook=webhook, actor=as_admin, now=now)
    route_events(now=now)
    count = Delivery.objects.count()
    assert count >= 1
    first = claim_webhook(now=now)
    assert first is not None
    assert claim_webhook(now=now) is None
    events = [each.event for each in first[1]]
    assert events == sorted(events)
    assert len(events) == count


def test_a_slow_endpoint_does_not_delay_others(receiver, webhook, test_event, as_admin, now, monkeypatch):
    with webhook_receiver() as fast:
        quick, _ = create_webhook(name="quick", url=fast.url, actor=as_admin, now=now)
        for _ in range(3):
            send_test(webhook=quick, event_type="session.ready", actor=as_admin, now=now)
        receiver.plan = [Reply(delay=1.5)]
        order = []
        real = delivery_run.record_attempts

        def record(*, webhook, attempts):
            order.extend([webhook.name] * len(attempts))
            real(webhook=webhook, attempts=attempts)

        monkeypatch.setattr(delivery_run, "record_attempts", record)
        assert deliver(now) == 4
    assert order == ["quick", "quick", "quick", "chat"]


def test_a_run_that_takes_too_long_gives_back_what_it_did_not_send_in_the_order_of_the_events(
    receiver, webhook, as_admin, now, monkeypatch
):
    monkeypatch.setattr(delivery_run, "CHUNK", 1)
    sent = [send_test(webhook=webhook, event_type="session.ready", actor=as_admin, now=now) for _ in range(3)]
    Delivery.objects.update(retry_until=now + timedelta(days=1))
    for number, each in enumerate(sent):
        at = now - timedelta(seconds=3 - number)
        Delivery.objects.filter(pk=each.pk).update(event=number, next_attempt_at=at)
    late = now + delivery_run.RUN_TIME
    assert deliver_due(clock=lambda: late if receiver.requests else now) == 1
    webhook.refresh_from_db()
    assert webhook.leased_until is None
    assert deliver(late) == 2
    assert [each.headers["webhook-id"] for each in receiver.requests] == [str(each.pk) for each in sent]


def test_a_changed_url_applies_to_deliveries_that_a_worker_has_claimed(
    receiver, webhook, test_event, as_admin, now, monkeypatch
):
    with webhook_receiver() as other:
        claims = []

        def claim_then_change(**arguments):
            claimed = claim_webhook(**arguments)
            if claimed and not claims:
                update_webhook(webhook=webhook, url=other.url, actor=as_admin, now=now)
            claims.append(claimed)
            return claimed

        monkeypatch.setattr(delivery_run, "claim_webhook", claim_then_change)
        assert deliver(now) == 1
        assert (len(receiver.requests), len(other.requests)) == (0, 1)


def test_sending_many_deliveries_takes_less_than_one_query_for_each(
    receiver, webhook, as_admin, now, django_assert_max_num_queries, monkeypatch
):
    monkeypatch.setattr(delivery_run, "CHUNK_SECONDS", 60)
    for _ in range(40):
        send_test(webhook=webhook, event_type="session.ready", actor=as_admin, now=now)
    with django_assert_max_num_queries(39):
        assert deliver(now) == 40
    assert len({each.client for each in receiver.requests}) == 1


def test_slack_gets_a_text(receiver, webhook, as_admin, now):
    update_webhook(webhook=webhook, format="slack", actor=as_admin, now=now)
    send_test(webhook=webhook, event_type="session.ready", actor=as_admin, now=now)
    deliver(now)
    (request,) = receiver.requests
    assert json.loads(request.body)["text"].startswith("*<https://lcm.example.org/sessions/")
    assert request.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/",
        "ftp://example.org/",
        "https://",
        "https://me:pw@example.org/",
        "x",
        "https://a b/",
        "https://[::1",
    ],
)
def test_a_url_that_lcm_would_not_send_to_is_refused(url, as_admin, now):
    with pytest.raises(InvalidInput) as error:
        create_webhook(name="chat", url=url, actor=as_admin, now=now)
    assert list(error.value.fields) == ["url"]


def test_a_webhook_with_a_rule_cannot_be_deleted_and_a_deleted_rule_keeps_its_deliveries(
    webhook, session, as_admin, now
):
    rule = create_rule(name="all", event_types=["*"], webhook=webhook, actor=as_admin, now=now)
    route_events(now=now)
    with pytest.raises(InUse):
        delete_webhook(webhook=webhook, reason="unused", actor=as_admin, now=now)
    delete_rule(rule=rule, reason="unused", actor=as_admin, now=now)
    assert Delivery.objects.filter(rule=None, event__isnull=False).exists()


def test_deliveries_are_removed_after_thirty_days(receiver, test_event, now):
    assert deliver(now) == 1
    remove_expired(now=now + timedelta(days=29))
    assert Delivery.objects.exists()
    remove_expired(now=now + timedelta(days=31))
    assert not DeliveryAttempt.objects.exists()
    assert not Delivery.objects.exists()
