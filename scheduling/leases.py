"""One at a time: leases in the database, which end by themselves."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from scheduling.models import Lease


@dataclass
class Hold:
    """A lease that was won; renewed while the work goes on."""

    name: str
    holder: str
    length: timedelta
    clock: Callable[[], datetime]

    def renew(self) -> bool:
        """Keep it for another while; False when it was lost, then stop working."""
        now = self.clock()
        mine = Lease.objects.filter(name=self.name, holder=self.holder)
        return mine.update(expires_at=now + self.length) == 1

    def release(self) -> None:
        Lease.objects.filter(name=self.name, holder=self.holder).delete()


@contextmanager
def lease(name: str, *, length: timedelta, clock: Callable[[], datetime]) -> Iterator[Hold | None]:
    """The lease for the block, or None when someone else has it."""
    hold = Hold(name, uuid.uuid4().hex, length, clock)
    if not _take(hold):
        yield None
        return
    try:
        yield hold
    finally:
        hold.release()


def _take(hold: Hold) -> bool:
    now = hold.clock()
    over = Lease.objects.filter(name=hold.name, expires_at__lte=now)
    if over.update(holder=hold.holder, expires_at=now + hold.length):
        return True
    try:
        with transaction.atomic():
            Lease.objects.create(name=hold.name, holder=hold.holder, expires_at=now + hold.length)
    except IntegrityError:
        return False
    return True
