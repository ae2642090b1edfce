"""Interruption notices, through an SQS queue in moto."""

import json
import logging
from datetime import UTC, datetime

import pytest

from scheduling.capacity.runtimes.base import Misconfigured
from scheduling.capacity.runtimes.ec2 import Ec2Runtime
from scheduling.capacity.runtimes.spot_notices import SpotNotices, parse_notice

WARNING = {
    "version": "0",
    "id": "12345678-1234-1234-1234-123456789012",
    "detail-type": "EC2 Spot Instance Interruption Warning",
    "source": "aws.ec2",
    "account": "123456789012",
    "time": "2026-03-01T12:00:00Z",
    "region": "eu-central-1",
    "resources": ["arn:aws:ec2:eu-central-1a:instance/i-0abc"],
    "detail": {"instance-id": "i-0abc", "instance-action": "terminate"},
}
DEADLINE = datetime(2026, 3, 1, 12, 2, tzinfo=UTC)


class SqsQueue:
    """A queue whose received messages are visible again immediately, until they are deleted."""

    def __init__(self, client, name, hidden_for="0"):
        self.client = client
        attributes = {"VisibilityTimeout": hidden_for}
        self.url = client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]

    def send(self, *bodies):
        for body in bodies:
            text = body if isinstance(body, str) else json.dumps(body)
            self.client.send_message(QueueUrl=self.url, MessageBody=text)

    def __len__(self):
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        response = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        return sum(int(response["Attributes"][name]) for name in names)


@pytest.fixture
def queue(boto_client, unique_name):
    return SqsQueue(boto_client("sqs"), unique_name)


@pytest.fixture
def runtime(queue, ec2_settings):
    return Ec2Runtime("cml-eu", {**ec2_settings, "interruption_queue_url": queue.url})


def warning_for(instance_id):
    return {**WARNING, "detail": {"instance-id": instance_id, "instance-action": "terminate"}}


def test_a_notice_has_the_instance_id_and_the_deadline(runtime, queue):
    queue.send(WARNING)
    (notice,) = runtime.interruptions()
    assert (notice.instance_id, notice.deadline) == ("i-0abc", DEADLINE)


def test_a_notice_stays_in_the_queue_until_it_is_acknowledged(runtime, queue):
    queue.send(WARNING)
    assert len(list(runtime.interruptions())) == 1
    (notice,) = runtime.interruptions()
    assert len(queue) == 1
    notice.acknowledge()
    assert len(queue) == 0
    assert list(runtime.interruptions()) == []


def test_notices_of_several_batches_are_all_read(boto_client, unique_name, ec2_settings):
    queue = SqsQueue(boto_client("sqs"), unique_name, hidden_for="30")
    runtime = Ec2Runtime(unique_name, {**ec2_settings, "interruption_queue_url": queue.url})
    names = {f"i-{number:04}" for number in range(25)}
    queue.send(*(warning_for(name) for name in names))
    notices = list(runtime.interruptions())
    assert {notice.instance_id for notice in notices} == names


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("not json", "Expecting value"),
        ("[" * 60_000, "recursion"),
        ("[]", "the message is not an event"),
        ("{}", "the message is not an event"),
        ({"detail-type": 5}, "the message is not an event"),
        ({**WARNING, "detail": None}, "has no valid instance id"),
        ({**WARNING, "detail": {"instance-id": 5}}, "has no valid instance id"),
        ({**WARNING, "detail": {"instance-id": "i-0\0abc"}}, "has no valid instance id"),
        ({**WARNING, "detail": {"instance-id": "i-\ud800"}}, "has no valid instance id"),
        ({**WARNING, "time": None}, "has no time"),
        ({**WARNING, "time": "yesterday"}, "Invalid isoformat"),
        ({**WARNING, "time": "2026-03-01T12:00:00"}, "has no time zone"),
        ({**WARNING, "time": "9999-12-31T23:59:59Z"}, "out of range"),
    ],
)
def test_an_unreadable_message_is_logged_and_deleted(runtime, queue, caplog, body, reason):
    queue.send(body, WARNING)
    with caplog.at_level(logging.WARNING, "scheduling.capacity.runtimes.spot_notices"):
        notices = list(runtime.interruptions())
    assert [notice.instance_id for notice in notices] == ["i-0abc"]
    assert len(queue) == 1
    (record,) = caplog.records
    assert record.message == "notice_unreadable"
    assert reason in record.reason


@pytest.mark.parametrize(
    "kind", ["EC2 Instance Rebalance Recommendation", "EC2 Instance State-change Notification"]
)
def test_other_events_are_deleted_without_a_warning(runtime, queue, caplog, kind):
    queue.send({**WARNING, "detail-type": kind})
    assert list(runtime.interruptions()) == []
    assert len(queue) == 0
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_reading_stops_after_the_maximum_of_batches(runtime, queue, monkeypatch):
    monkeypatch.setattr(SpotNotices, "max_batches", 1)
    queue.send(*(warning_for(f"i-{number}") for number in range(11)))
    assert len(list(runtime.interruptions())) == 10


def test_without_a_queue_there_are_no_notices(ec2_settings):
    assert list(Ec2Runtime("cml-eu", ec2_settings).interruptions()) == []


def test_a_missing_queue_is_a_configuration_error(runtime, queue):
    queue.client.delete_queue(QueueUrl=queue.url)
    with pytest.raises(Misconfigured, match="read http"):
        list(runtime.interruptions())


def test_the_deadline_uses_the_time_zone_of_the_event():
    assert parse_notice(json.dumps({**WARNING, "time": "2026-03-01T13:00:00+01:00"})) == ("i-0abc", DEADLINE)
