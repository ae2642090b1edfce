"""One at a time: leases in the database, which end by themselves."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q

from scheduling.models import Lease


@dataclass
class Hold:
    """A lease that was won; renewed while the work goes on."""

    name: str
    holder: str
    length: timedelta
    clock: Callable[[], datetime]
    taken_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.taken_at = self.clock()

    def renew(self) -> bool:
        """Keep it for another while; False when it was lost, then stop working."""
        now = self.clock()
        mine = Lease.objects.filter(name=self.name, holder=self.holder)
        if mine.update(expires_at=now + self.length) != 1:
            return False
        self.taken_at = now
        return True

    def still_mine(self) -> bool:
        """Renewed when half of its time is over; before that nobody else can have it."""
        return self.clock() - self.taken_at < self.length / 2 or self.renew()

    def release(self) -> None:
        release(self.name, holder=self.holder)


@contextmanager
def lease(name: str, *, length: timedelta, clock: Callable[[], datetime]) -> Iterator[Hold | None]:
    """The lease for the block, or None when someone else has it."""
    hold = Hold(name, uuid.uuid4().hex, length, clock)
    if not take_or_renew(name, holder=hold.holder, length=length, now=hold.taken_at):
        yield None
        return
    try:
        yield hold
    finally:
        hold.release()


def take_or_renew(name: str, *, holder: str, length: timedelta, now: datetime) -> bool:
    """Have the lease for another while; False when someone else has it."""
    mine_or_over = Lease.objects.filter(Q(holder=holder) | Q(expires_at__lte=now), name=name)
    if mine_or_over.update(holder=holder, expires_at=now + length):
        return True
    try:
        with transaction.atomic():
            Lease.objects.create(name=name, holder=holder, expires_at=now + length)
    except IntegrityError:
        return False
    return True


def release(name: str, *, holder: str) -> None:
    """Give the lease back; one that is lost already is none to give back."""
    Lease.objects.filter(name=name, holder=holder).delete()
