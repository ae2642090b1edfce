"""EC2 spot interruption notices, read from an SQS queue that EventBridge feeds."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar

from scheduling.capacity.runtimes import aws
from scheduling.capacity.runtimes.base import Interruption

logger = logging.getLogger(__name__)

WARNING = "EC2 Spot Instance Interruption Warning"
NOTICE = timedelta(seconds=120)
INSTANCE = re.compile(r"i-[0-9a-z]{1,90}")


class SpotNotices:
    """Reads the queue. A notice stays in it until it is acknowledged; unrelated messages are deleted."""

    wait_seconds: ClassVar[int] = 1  # long polling queries all servers, 0 only some
    max_batches: ClassVar[int] = 20

    def __init__(self, client: Any, queue_url: str) -> None:
        self._client = client
        self._url = queue_url

    def receive(self) -> Iterator[Interruption]:
        """Return the available notices; one that is not acknowledged is received again."""
        seen: set[str] = set()
        for _ in range(self.max_batches):
            fresh = [message for message in self._batch() if message["MessageId"] not in seen]
            if not fresh:
                return
            seen |= {message["MessageId"] for message in fresh}
            for message in fresh:
                notice = self._notice(message)
                if notice:
                    yield notice

    def _batch(self) -> list[dict[str, Any]]:
        with aws.calling(f"read {self._url}"):
            response = self._client.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=10, WaitTimeSeconds=self.wait_seconds
            )
        return list(response.get("Messages", ()))

    def _notice(self, message: dict[str, Any]) -> Interruption | None:
        delete = partial(self._delete, message["ReceiptHandle"])
        try:
            notice = parse_notice(message["Body"])
        except (ValueError, OverflowError, RecursionError) as error:
            fields = {"queue": self._url, "body": message["Body"][:500], "reason": f"{error}"}
            logger.warning("notice_unreadable", extra=fields)
            notice = None
        if notice is None:
            delete()
            return None
        return Interruption(*notice, acknowledge=delete)

    def _delete(self, receipt: str) -> None:
        with aws.calling(f"delete a message of {self._url}"):
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=receipt)


def parse_notice(body: str) -> tuple[str, datetime] | None:
    """Return the instance and its end; None for another kind of event; raise for an invalid message."""
    event: Any = json.loads(body)
    if not isinstance(event, dict) or not isinstance(event.get("detail-type"), str):
        raise ValueError("the message is not an event")
    if event["detail-type"] != WARNING:
        return None
    detail = event.get("detail")
    instance_id = detail.get("instance-id") if isinstance(detail, dict) else None
    if not isinstance(instance_id, str) or not INSTANCE.fullmatch(instance_id):
        raise ValueError("the event has no valid instance id")
    at = event.get("time")
    if not isinstance(at, str):
        raise ValueError("the event has no time")
    when = datetime.fromisoformat(at)
    if when.tzinfo is None:
        raise ValueError("the event's time has no time zone")
    return instance_id, when + NOTICE
