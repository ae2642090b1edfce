"""Delivery to real receivers while workers are killed, servers restart and endpoints fail."""

from __future__ import annotations

import json
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Event, Thread

import pytest

from tests.end_to_end.notifications.conftest import Stage
from tests.support.webhook_receiver import Receiver, Reply, webhook_receiver

pytestmark = [pytest.mark.postgres, pytest.mark.integration, pytest.mark.xdist_group("notifications")]

# A worker that was killed holds its leases for this long, instead of a minute.
LEASE_SECONDS = 3


@pytest.fixture
def receivers() -> Iterator[list[Receiver]]:
    with ExitStack() as stack:
        yield [stack.enter_context(webhook_receiver()) for _ in range(2)]


@pytest.fixture
def receiver(receivers: list[Receiver]) -> Receiver:
    return receivers[0]


def check_delivered(stage: Stage, receiver: Receiver, *, after: int) -> None:
    """Wait until every event of the change log is at the receiver; repeated requests have the same bytes."""
    ended = time.monotonic()

    def is_complete() -> bool:
        nonlocal ended
        if time.monotonic() - ended > LEASE_SECONDS:
            stage.end_leases()
            ended = time.monotonic()
        return not stage.missing(list(receiver.requests), after=after)

    stage.wait_for(is_complete, "every event is at the receiver")
    subjects = {json.loads(each.body)["subject"].split("/")[1] for each in receiver.requests}
    assert stage.confirmed
    assert stage.confirmed <= subjects
    bodies = defaultdict(set)
    for each in receiver.requests:
        bodies[each.headers["webhook-id"]].add(each.body)
    assert all(len(found) == 1 for found in bodies.values())
    pending = "SELECT count(*) FROM lcm_delivery WHERE state = 'pending'"
    stage.wait_for(lambda: stage.rows(pending) == [(0,)], "no delivery is pending")


def test_events_are_delivered_again_after_a_worker_was_killed_while_it_sent(stage, receiver):
    stage.subscribe(receiver)
    after = stage.last_event()
    receiver.plan = [Reply(), Reply(delay=60)]
    stage.cause_events(2)
    stage.wait_for(lambda: len(receiver.requests) == 2, "a request waits for its response")
    held = receiver.requests[1].headers["webhook-id"]
    stage.kill_worker()
    stage.cause_events(3)
    stage.end_leases()
    check_delivered(stage, receiver, after=after)
    assert [each.headers["webhook-id"] for each in receiver.requests].count(held) > 1


def test_an_email_is_sent_again_after_a_worker_was_killed_while_it_sent(stage):
    rule = {
        "name": "mail",
        "event_types": ["token.created"],
        "channel": "email",
        "recipients": ["ops@example.org"],
        "digest_interval": "00:00:00",
    }
    stage.create("event-rules/", rule)
    stage.mail.delay = 60
    stage.cause_events(1)
    stage.wait_for(lambda: stage.mail.received, "the mail server has the message and does not respond")
    stage.kill_worker()
    stage.mail.delay = 0
    stage.end_leases()
    stage.wait_for(lambda: stage.mail.messages, "the message is sent again")
    assert len(stage.mail.received) == 2
    assert len(set(stage.mail.received)) == 1
    delivered = "SELECT count(*) FROM lcm_delivery WHERE channel = 'email' AND state = 'delivered'"
    stage.wait_for(lambda: stage.rows(delivered) == [(1,)], "the delivery is recorded")


def test_no_event_is_lost_while_the_broker_is_down(stage, receiver):
    stage.subscribe(receiver)
    after = stage.last_event()
    receiver.otherwise = Reply(delay=0.05)
    stage.cause_events(5)
    stage.broker.shut_down(signal.SIGKILL)
    try:
        stage.cause_events(5)
    finally:
        stage.broker.start_again()
    stage.cause_events(5)
    check_delivered(stage, receiver, after=after)


def test_no_event_is_lost_and_none_exists_without_its_cause_when_the_database_restarts(stage, receiver):
    stage.subscribe(receiver)
    after = stage.last_event()
    receiver.otherwise = Reply(delay=0.05)
    stopped = Event()

    def cause_events() -> None:
        while not stopped.is_set():
            stage.cause_events(1)

    clients = Thread(target=cause_events)
    clients.start()
    try:
        stage.wait_for(lambda: len(receiver.requests) >= 5, "events arrive")
        stage.database.shut_down()
        stage.database.start_again()
        stage.wait_for(lambda: stage.database.is_ready, "the database is ready")
        stage.end_leases()
        confirmed = len(stage.confirmed)
        stage.wait_for(lambda: len(stage.confirmed) >= confirmed + 5, "LCM confirms new requests")
    finally:
        stopped.set()
        clients.join()
    check_delivered(stage, receiver, after=after)
    causes = {str(key) for (key,) in stage.rows("SELECT id FROM lcm_apitoken")}
    assert {json.loads(each.body)["subject"].split("/")[1] for each in receiver.requests} <= causes


def test_failed_attempts_are_repeated_with_the_same_bytes(stage, receiver):
    stage.subscribe(receiver)
    after = stage.last_event()
    receiver.plan = [
        Reply(500),
        Reply(429, {"Retry-After": "600"}),
        Reply(cut=True),
        Reply(302, {"Location": "/elsewhere"}),
        Reply(200, body=b"x" * 100, close=True),
    ]
    stage.cause_events(6)
    failed = "SELECT error FROM lcm_delivery WHERE state = 'pending' AND error <> ''"
    stage.wait_for(lambda: len(stage.rows(failed)) == 4, "four attempts failed")
    late = "SELECT count(*) FROM lcm_delivery WHERE next_attempt_at > now() + interval '9 minutes'"
    assert stage.rows(late) == [(1,)]
    stage.end_leases()
    check_delivered(stage, receiver, after=after)
    assert {each.path for each in receiver.requests} == {"/hook"}
    # Six events and four failed attempts. On a busy machine an attempt may be repeated while it is recorded.
    assert len(receiver.requests) >= 10


def test_a_slow_endpoint_delays_no_other_and_a_disabled_or_deleted_one_gets_nothing(stage, receivers):
    fast, slow = receivers
    stage.subscribe(fast)
    hook = stage.subscribe(slow)
    after = stage.last_event()
    slow.otherwise = Reply(delay=2)
    stage.cause_events(30)
    stage.wait_for(lambda: not stage.missing(list(fast.requests), after=after), "the fast one has all")
    assert len(slow.requests) < 15
    disabled = stage.call("PATCH", f"webhooks/{hook}/", {"enabled": False})
    sent = len(slow.requests)
    assert disabled.status_code == 200
    stage.cause_events(1)
    stage.wait_for(lambda: not stage.missing(list(fast.requests), after=after), "the fast one has all")
    # A chunk of requests may have started.
    assert len(slow.requests) <= sent + 1
    for path in ("event-rules", "webhooks"):
        (found,) = [
            each["id"]
            for each in stage.call("GET", f"{path}/").json()["results"]
            if hook in (each["id"], each.get("webhook"))
        ]
        assert stage.call("DELETE", f"{path}/{found}/", {"reason": "unused"}).status_code == 204
    stage.cause_events(1)
    stage.wait_for(lambda: not stage.missing(list(fast.requests), after=after), "the fast one has all")
    assert len(slow.requests) <= sent + 1


def test_an_endpoint_that_is_gone_is_disabled_and_others_are_told(stage, receivers):
    gone, other = receivers
    hook = stage.subscribe(gone)
    stage.subscribe(other, "*")
    gone.otherwise = Reply(410)
    stage.cause_events(3)

    def types() -> list[str]:
        return [json.loads(each.body)["type"] for each in list(other.requests)]

    stage.wait_for(lambda: "org.lcm.webhook.disabled" in types(), "the event arrives")
    stage.cause_events(1)
    stage.wait_for(lambda: types().count("org.lcm.token.created") == 4, "other events arrive")
    assert len(gone.requests) == 1
    assert stage.call("GET", f"webhooks/{hook}/").json()["enabled"] is False
