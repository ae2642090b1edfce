"""Send due e-mails: a few at the same time, in threads that do not use the database.

One worker sends at a time. While a mail server hangs, further runs would occupy all worker processes, so that
ticks wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import datetime, timedelta

from lcm.events.mail_client import send_mail
from lcm.events.mail_message import mail_message
from lcm.events.webhook_client import SendResult
from lcm.models import Delivery, Heartbeat
from lcm.services.deliveries import LEASE
from lcm.services.mail_delivery import claim_mail, due_mails, record_mail

MAILS_AT_ONCE = 4
# A run claims no further e-mails after this time.
RUN_TIME = timedelta(seconds=45)
# Name of the heartbeat of a run. Other runs start when it is as old as a lease.
HEARTBEAT = "mails"
HEARTBEAT_SECONDS = 5.0

Clock = Callable[[], datetime]


def send_due_mails(*, clock: Clock) -> int:
    """Send e-mails until none is due; return the number of messages, 0 if another run is sending."""
    if not due_mails(now=clock()).exists():
        return 0
    with _only_run(clock) as is_only:
        return _send(clock) if is_only else 0


def _send(clock: Clock) -> int:
    stop = clock() + RUN_TIME
    sending: dict[Future[SendResult], Sequence[Delivery]] = {}
    count = 0
    with ThreadPoolExecutor(MAILS_AT_ONCE) as threads:
        while True:
            while len(sending) < MAILS_AT_ONCE and clock() < stop and (claimed := claim_mail(now=clock())):
                sending[threads.submit(send_mail, mail_message(claimed))] = claimed
            if not sending:
                return count
            for future in wait(sending, timeout=HEARTBEAT_SECONDS, return_when=FIRST_COMPLETED).done:
                record_mail(deliveries=sending.pop(future), result=future.result(), now=clock())
                count += 1
            Heartbeat.objects.filter(name=HEARTBEAT).update(at=clock())


@contextmanager
def _only_run(clock: Clock) -> Iterator[bool]:
    """Return whether no other run is sending; until the end of the block none starts."""
    now = clock()
    rows = Heartbeat.objects.filter(name=HEARTBEAT)
    _row, is_first = Heartbeat.objects.get_or_create(name=HEARTBEAT, defaults={"at": now})
    if not is_first and not rows.filter(at__lte=now - LEASE).update(at=now):
        yield False
        return
    try:
        yield True
    finally:
        rows.delete()
