"""Send due e-mails: a few at the same time, in threads that do not use the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta

from lcm.events.mail_client import send_mail
from lcm.events.mail_message import mail_message
from lcm.events.webhook_client import SendResult
from lcm.models import Delivery
from lcm.services.mail_delivery import claim_mail, record_mail

MAILS_AT_ONCE = 4
# A run claims no further e-mails after this time.
RUN_TIME = timedelta(seconds=45)


def send_due_mails(*, clock: Callable[[], datetime]) -> int:
    """Send e-mails until none is due; return the number of messages."""
    stop = clock() + RUN_TIME
    sending: dict[Future[SendResult], Sequence[Delivery]] = {}
    count = 0
    with ThreadPoolExecutor(MAILS_AT_ONCE) as threads:
        while True:
            while len(sending) < MAILS_AT_ONCE and clock() < stop and (claimed := claim_mail(now=clock())):
                sending[threads.submit(send_mail, mail_message(claimed))] = claimed
            if not sending:
                return count
            for future in wait(sending, return_when=FIRST_COMPLETED).done:
                record_mail(deliveries=sending.pop(future), result=future.result(), now=clock())
                count += 1
