"""Leases in the database: one holder at a time, renewed while the holder works.

A lease is short, so that another process can take over soon after its holder died. All times are
the database's: the clock of a machine can be wrong.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from datetime import datetime, timedelta
from threading import Event, Thread
from time import monotonic

from django.db import Error, IntegrityError, connection, connections, transaction
from django.db.models import Q
from django.db.models.functions import Now

from scheduling.models import ProcessLease

logger = logging.getLogger(__name__)

# Wait this long at most for a renewal that is under way when the work is done.
RENEWAL_TIMEOUT = 5.0


class HeldLease:
    """A lease that this process holds."""

    def __init__(self, name: str, length: timedelta) -> None:
        self.name, self.length = name, length
        self.holder = uuid.uuid4().hex
        self._confirmed = monotonic()

    def renew(self) -> bool:
        """Extend the lease; False if another holder took it, so work must stop."""
        started = monotonic()
        own = ProcessLease.objects.filter(name=self.name, holder=self.holder)
        if own.update(expires_at=Now() + self.length) != 1:
            return False
        self._confirmed = started
        return True

    def is_held(self) -> bool:
        """Return whether work may continue; needs a query only if the last renewal is half a lease ago."""
        return monotonic() - self._confirmed < self.length.total_seconds() / 2 or self.renew()

    def release(self) -> None:
        release(self.name, holder=self.holder)


@contextmanager
def lease(name: str, *, length: timedelta) -> Iterator[HeldLease | None]:
    """Hold the lease for the block and renew it meanwhile; None if another holder has it."""
    hold = HeldLease(name, length)
    if not take_or_renew(name, holder=hold.holder, length=length, now=Now()):
        yield None
        return
    try:
        with _renewed(hold):
            yield hold
    finally:
        try:
            hold.release()
        except Error as error:
            # The lease expires by itself. The error of the block, if any, is the one to raise.
            logger.warning("lease_not_released", extra={"lease": name, "error": str(error)})


def take_or_renew(name: str, *, holder: str, length: timedelta, now: datetime | Now) -> bool:
    """Take or renew the lease for another `length`; False if another holder has it."""
    own_or_expired = ProcessLease.objects.filter(Q(holder=holder) | Q(expires_at__lte=now), name=name)
    if own_or_expired.update(holder=holder, expires_at=now + length):
        return True
    try:
        with transaction.atomic():
            ProcessLease.objects.create(name=name, holder=holder, expires_at=now + length)
    except IntegrityError:
        return False
    return True


def release(name: str, *, holder: str) -> None:
    """End the lease; a lease that another holder took stays."""
    ProcessLease.objects.filter(name=name, holder=holder).delete()


def expired_leases() -> list[tuple[str, str]]:
    """Return name and holder of each lease that its holder neither renewed nor released."""
    return list(ProcessLease.objects.filter(expires_at__lte=Now()).values_list("name", "holder"))


def delete_expired_lease(name: str, *, holder: str) -> None:
    """Remove an expired lease, so that its holder stops if it is still alive."""
    ProcessLease.objects.filter(name=name, holder=holder, expires_at__lte=Now()).delete()


@contextmanager
def _renewed(hold: HeldLease) -> Iterator[None]:
    """Renew the lease in a thread until the block ends."""
    # A lease that is taken inside a transaction is locked until the commit: no other holder can take it.
    if connection.in_atomic_block:
        yield
        return
    ended = Event()
    work = copy_context().run
    thread = Thread(target=work, args=(_renew_until, hold, ended), name=f"lease {hold.name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(RENEWAL_TIMEOUT)


def _renew_until(hold: HeldLease, ended: Event) -> None:
    """Renew after each third of the lease, on a connection of this thread; sooner after an error."""
    third = pause = hold.length.total_seconds() / 3
    while not ended.wait(pause):
        pause = third
        try:
            if not hold.renew():
                logger.warning("lease_lost", extra={"lease": hold.name})
                return
        except Error as error:
            pause = third / 4
            logger.warning("lease_not_renewed", extra={"lease": hold.name, "error": str(error)})
        finally:
            connections.close_all()
