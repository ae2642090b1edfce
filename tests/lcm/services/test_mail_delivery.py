"""E-mail to a real SMTP server: parts, digests, retries, refusals, leases and the link that stops it."""

from __future__ import annotations

import logging
import re
import socket
from datetime import timedelta
from ipaddress import ip_network
from threading import Thread
from unittest.mock import Mock

import pytest
from django.apps import apps

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.models import Channel, Delivery, DeliveryAttempt, DeliveryState, EventRule, Heartbeat
from lcm.services import mail_run
from lcm.services.deliveries import LEASE, retry_delivery, send_rule_test, send_test
from lcm.services.delivery_run import deliver_due
from lcm.services.event_routing import PERSONAL_DIGEST, route_events
from lcm.services.event_rules import create_rule, delete_rule, update_rule
from lcm.services.mail_delivery import claim_mail
from lcm.services.mail_run import send_due_mails
from lcm.services.sessions import cancel_session
from lcm.services.subscriptions import choose_notifications, stop_mail, watch_object
from lcm.services.webhooks import create_webhook
from tests.support.mail_server import mail_server, part_of
from tests.support.webhook_receiver import webhook_receiver

MINUTE = timedelta(minutes=1)


@pytest.fixture
def server(settings):
    with mail_server(settings) as found:
        yield found


@pytest.fixture
def rule(server, as_admin, now):
    return create_rule(
        name="sessions",
        event_types=["session.*"],
        channel=Channel.EMAIL,
        recipients=["ops@example.org"],
        digest_interval=5 * MINUTE,
        actor=as_admin,
        now=now,
    )


@pytest.fixture
def mail(rule, session, now):
    """A pending e-mail, due now."""
    route_events(now=now)
    Delivery.objects.update(next_attempt_at=now)
    return Delivery.objects.get()


def deliver(now):
    return send_due_mails(clock=lambda: now)


def test_an_event_becomes_an_email_with_text_html_and_a_link_to_the_object(mail, server, session, rule, now):
    assert deliver(now) == 1
    (message,) = server.messages
    name = f"session {session.short_id}"
    assert message["Subject"] == f"[LCM] Session requested: {name}"
    assert (message["To"], message["From"]) == ("ops@example.org", "lcm@localhost")
    assert re.fullmatch(r"<[0-9a-f-]{36}@127\.0\.0\.1>", message["Message-ID"])
    assert message["List-Unsubscribe"] is None
    url = f"http://127.0.0.1:8000/sessions/{session.pk}/"
    assert {name, url, "rule “sessions”"} <= {
        each for each in (name, url, "rule “sessions”") if each in part_of(message, "plain")
    }
    assert f'<a href="{url}">{name}</a>' in part_of(message, "html")
    mail.refresh_from_db()
    assert (mail.state, mail.attempt_count) == (DeliveryState.DELIVERED, 1)
    assert DeliveryAttempt.objects.get().status == 250


def test_events_of_a_rule_within_the_interval_become_one_email(server, rule, session_in, as_admin, now):
    route_events(now=now)
    first = session_in(SessionStatus.PENDING)
    route_events(now=now)
    second = session_in(SessionStatus.PENDING)
    route_events(now=now + 3 * MINUTE)
    assert deliver(now + 4 * MINUTE) == 0
    assert deliver(now + 5 * MINUTE) == 1
    (message,) = server.messages
    assert message["Subject"] == "[LCM] 2 events: sessions"
    assert [each.short_id in part_of(message, "plain") for each in (first, second)] == [True, True]
    assert DeliveryAttempt.objects.count() == 2
    # The next event opens a new interval.
    cancel_session(session=first, reason="late", actor=as_admin, now=now)
    route_events(now=now + 6 * MINUTE)
    assert deliver(now + 10 * MINUTE) == 0
    assert deliver(now + 11 * MINUTE) == 1


def test_without_an_interval_an_event_is_sent_at_once(server, rule, session, as_admin, now):
    update_rule(rule=rule, digest_interval=timedelta(0), actor=as_admin, now=now)
    route_events(now=now)
    assert deliver(now) == 1


def test_a_temporary_refusal_is_retried_with_growing_pauses_and_the_same_message_id(mail, server, now):
    server.recipients, server.messages_plan = ["451 try later"], ["452 disk full"]
    pauses, moment = [], now
    for _ in range(3):
        assert deliver(moment) == 1
        assert deliver(moment) == 0
        mail.refresh_from_db()
        if mail.next_attempt_at:
            pauses.append((mail.next_attempt_at - moment).total_seconds())
            moment = mail.next_attempt_at
    assert [4 <= pauses[0] <= 6, 24 <= pauses[1] <= 36] == [True, True]
    assert mail.state == DeliveryState.DELIVERED
    attempts = list(mail.attempts.order_by("pk"))
    assert [each.status for each in attempts] == [451, 452, 250]
    assert attempts[0].response == "try later"


def test_a_server_that_is_down_is_retried_for_a_day(mail, settings, server, now):
    settings.EMAIL_PORT = 1
    deliver(now)
    mail.refresh_from_db()
    assert (mail.state, "refused" in mail.error) == (DeliveryState.PENDING, True)
    assert mail.attempts.get().status is None
    Delivery.objects.update(next_attempt_at=mail.retry_until - timedelta(seconds=1))
    deliver(mail.retry_until - timedelta(seconds=1))
    mail.refresh_from_db()
    assert mail.state == DeliveryState.FAILED
    settings.EMAIL_PORT = int(server.url.rpartition(":")[2])
    retry_delivery(delivery=mail, reason="server is back", actor=SYSTEM, now=now)
    assert deliver(now) == 1
    assert len(server.messages) == 1


def test_a_server_that_does_not_speak_smtp_is_a_failed_attempt(mail, settings, now):
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings.EMAIL_PORT = other.getsockname()[1]
        thread = Thread(target=_greet, args=(other, b"SSH-2.0-OpenSSH_9.9\r\n"))
        thread.start()
        deliver(now)
        thread.join()
    mail.refresh_from_db()
    assert (mail.state, mail.attempt_count) == (DeliveryState.PENDING, 1)
    assert mail.error == "The mail server sent no SMTP response."
    assert mail.attempts.get().status is None


def _greet(server, greeting):
    connection, _address = server.accept()
    with connection:
        connection.sendall(greeting)


def test_the_events_of_an_email_are_retried_in_one_email(mail, server, session_in, rule, now):
    for _ in range(5):
        session_in(SessionStatus.PENDING)
    route_events(now=now)
    Delivery.objects.update(next_attempt_at=now)
    server.messages_plan = ["452 disk full"]
    deliver(now)
    (due,) = set(Delivery.objects.values_list("next_attempt_at", flat=True))
    assert deliver(due) == 1
    assert not Delivery.objects.exclude(state=DeliveryState.DELIVERED).exists()


def test_an_email_with_a_further_event_has_another_message_id(mail, server, session_in, now):
    """The worker is killed after the server took the message, and an event arrives before the retry."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mail_run, "record_mail", Mock())
        deliver(now)
    session_in(SessionStatus.PENDING)
    route_events(now=now)
    assert deliver(now + LEASE) == 1
    assert len({message["Message-ID"] for message in server.messages}) == 2


@pytest.mark.parametrize("plan", ["recipients", "messages_plan"])
def test_a_permanent_refusal_fails_the_delivery_at_once(plan, mail, server, now):
    setattr(server, plan, ["550 no such mailbox"])
    deliver(now)
    mail.refresh_from_db()
    assert (mail.state, mail.next_attempt_at) == (DeliveryState.FAILED, None)
    assert mail.error.startswith("SMTP 550")


def test_an_email_of_a_worker_that_was_killed_is_sent_again_when_its_lease_ends(mail, server, now):
    """The worker is killed after the server took the message and before the result is stored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mail_run, "record_mail", Mock())
        deliver(now)
    assert len(server.messages) == 1
    assert deliver(now + LEASE / 2) == 0
    assert deliver(now + LEASE) == 1
    assert len({message["Message-ID"] for message in server.messages}) == 1
    mail.refresh_from_db()
    assert mail.state == DeliveryState.DELIVERED


def test_a_claimed_email_is_not_claimed_again(mail, now):
    assert claim_mail(now=now) == [mail]
    assert claim_mail(now=now) == []


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_workers_send_each_email_once(server, as_admin, session_in, now, at_once):
    rule = create_rule(
        name="all",
        event_types=["session.*"],
        channel=Channel.EMAIL,
        recipients=[f"person-{number}@example.org" for number in range(10)],
        actor=as_admin,
        now=now,
    )
    session_in(SessionStatus.PENDING)
    route_events(now=now)
    server.delay = 0.05
    due = now + rule.digest_interval
    found = at_once(*[lambda: deliver(due)] * 2)
    assert sorted(message["To"] for message in server.messages) == sorted(rule.recipients)
    assert sum(found) == 10


def test_a_second_run_sends_nothing_while_one_is_sending(rule, server, session, now, as_admin, monkeypatch):
    """While the mail server hangs, e-mail occupies one worker process, and ticks have the others."""
    update_rule(rule=rule, recipients=[f"{n}@example.org" for n in range(3)], actor=as_admin, now=now)
    route_events(now=now)
    monkeypatch.setattr(mail_run, "MAILS_AT_ONCE", 1)
    real, others = mail_run.record_mail, []

    def record(**arguments):
        others.append(deliver(now + 5 * MINUTE))
        real(**arguments)

    monkeypatch.setattr(mail_run, "record_mail", record)
    assert deliver(now + 5 * MINUTE) == 3
    assert others == [0, 0, 0]


def test_after_a_run_was_killed_the_next_one_starts_when_its_heartbeat_is_old(mail, server, now):
    Heartbeat.objects.create(name=mail_run.HEARTBEAT, at=now)
    assert deliver(now + LEASE / 2) == 0
    assert deliver(now + LEASE) == 1


def test_a_mail_server_does_not_delay_webhooks(mail, server, as_admin, now, settings):
    """E-mail has a run of its own."""
    settings.CONFIG["WEBHOOK_ALLOWED_NETWORKS"] = [ip_network("127.0.0.0/8")]
    with webhook_receiver() as receiver:
        webhook, _ = create_webhook(name="chat", url=receiver.url, actor=as_admin, now=now)
        send_test(webhook=webhook, event_type="session.ready", actor=as_admin, now=now)
        assert deliver_due(clock=lambda: now) == 1
        assert server.messages == []
        assert deliver(now) == 1
        assert len(receiver.requests) == 1


def test_email_that_waits_is_dropped_when_email_is_no_longer_configured(mail, settings, now):
    settings.CONFIG["EMAIL_URL"] = ""
    assert deliver(now) == 0
    mail.refresh_from_db()
    assert (mail.state, "EMAIL_URL" in mail.error) == (DeliveryState.DROPPED, True)
    with pytest.raises(StateConflict, match="EMAIL_URL"):
        retry_delivery(delivery=mail, reason="again", actor=SYSTEM, now=now)


def test_a_personal_email_has_a_link_that_stops_personal_email_without_signing_in(
    server, session, operator, client, now
):
    choose_notifications(user=operator, choices={Channel.EMAIL: ["watched"]}, actor=SYSTEM, now=now)
    watch_object(user=operator, obj=session, now=now)
    route_events(now=now)
    assert deliver(now + PERSONAL_DIGEST) == 1
    (message,) = server.messages
    url = message["List-Unsubscribe"].strip(" <>")
    assert url in part_of(message, "plain")
    assert url in part_of(message, "html")
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    path = url.removeprefix("http://127.0.0.1:8000")
    cancel_session(session=session, reason="late", actor=SYSTEM, now=now)
    route_events(now=now)
    assert "otto" in client.get(path).content.decode()
    operator.refresh_from_db()
    assert operator.notification_choices["email"] == ["watched"]
    assert client.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    operator.refresh_from_db()
    assert operator.notification_choices["email"] == []
    # Also the e-mail that waited.
    assert deliver(now + 2 * PERSONAL_DIGEST) == 0
    assert client.get(path[:-3]).status_code == 404


def test_the_tokens_of_links_and_the_password_of_the_server_are_stored_and_logged_nowhere(
    server, session, operator, client, settings, now, caplog
):
    caplog.set_level(logging.DEBUG)
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "lcm", "s3cret-mail"
    choose_notifications(user=operator, choices={Channel.EMAIL: ["watched"]}, actor=SYSTEM, now=now)
    watch_object(user=operator, obj=session, now=now)
    route_events(now=now)
    deliver(now + PERSONAL_DIGEST)
    assert Delivery.objects.get(channel=Channel.EMAIL).state == DeliveryState.PENDING
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    deliver(now + timedelta(hours=1))
    token = re.search("/unsubscribe/([^>]+)>", server.messages[0]["List-Unsubscribe"])[1]
    client.get(f"/unsubscribe/{token}")
    stop_mail(user=operator, now=now)
    stored = "".join(str(list(model._base_manager.values())) for model in apps.get_models())
    # The server of the test logs what it receives.
    logged = "".join(str(vars(record)) for record in caplog.records if record.name.startswith("lcm"))
    assert "mail_attempt_failed" in logged
    for secret in (token, "s3cret-mail"):
        assert secret not in stored + logged


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"recipients": []}, "recipients"),
        ({"recipients": ["unknown"]}, "recipients"),
        ({"recipients": ["role:Boss"]}, "recipients"),
        ({"channel": "inbox"}, "recipients"),
        ({"channel": "webhook"}, "webhook"),
        ({"digest_interval": timedelta(hours=2)}, "digest_interval"),
    ],
)
def test_a_rule_without_a_possible_target_is_refused_at_the_field(changes, field, rule, as_admin, now):
    with pytest.raises(InvalidInput) as error:
        update_rule(rule=rule, actor=as_admin, now=now, **changes)
    assert list(error.value.fields) == [field]


def test_a_rule_by_email_is_refused_without_a_mail_server(rule, settings, as_admin, now):
    settings.CONFIG["EMAIL_URL"] = ""
    with pytest.raises(InvalidInput) as error:
        update_rule(rule=rule, name="other", actor=as_admin, now=now)
    assert list(error.value.fields) == ["channel"]


def test_a_test_of_a_rule_is_sent_to_each_recipient_at_once(server, rule, admin, viewer, as_admin, now):
    update_rule(rule=rule, recipients=["role:Admin", "vera", "x@example.org"], actor=as_admin, now=now)
    sent = send_rule_test(rule=rule, event_type="slot.ready", actor=as_admin, now=now)
    assert sorted(each.address for each in sent) == ["ada@example.org", "vera@example.org", "x@example.org"]
    assert deliver(now) == 3
    assert server.messages[0]["Subject"].startswith("[LCM] Test: Slot ready")
    delete_rule(rule=rule, reason="unused", actor=as_admin, now=now)
    assert not EventRule.objects.exists()
