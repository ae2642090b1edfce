"""Step 1: reservations that were not renewed."""

from __future__ import annotations

import pytest

from scheduling.capacity.steps import expire as step
from scheduling.capacity.steps.expire import expire
from scheduling.models import Phase
from scheduling.services import reservations
from scheduling.services.reservations import renew_reservation
from tests.support.fleet import phases


@pytest.mark.parametrize(
    ("seconds", "phase"), [(59, Phase.PENDING), (60, Phase.EXPIRED), (600, Phase.EXPIRED)]
)
def test_a_waiting_reservation_expires_at_the_end_of_its_ttl(fleet, seconds, phase):
    reservation = fleet.reservation(ttl=60)
    fleet.clock.advance(seconds=seconds)
    tick = fleet.context()
    expire(tick)
    assert phases([reservation]) == [phase]
    assert tick.counts == ({"expired": 1} if phase == Phase.EXPIRED else {})


def test_an_expired_reservation_releases_its_lease(fleet):
    slot = fleet.slot()
    reservation = fleet.assign(fleet.reservation(ttl=60), slot)
    assert slot.lease_count == 1
    ended_at = fleet.clock.advance(seconds=60)
    expire(fleet.context())
    slot.refresh_from_db()
    reservation.refresh_from_db()
    assert (slot.lease_count, slot.idle_since) == (0, ended_at)
    assert (reservation.phase, reservation.released_at, reservation.reason) == (
        Phase.EXPIRED,
        ended_at,
        "not renewed in time",
    )


def test_expired_reservations_on_several_slots_release_their_own_leases(fleet):
    slots = [fleet.slot(), fleet.slot()]
    for ttl, slot in ((60, 0), (60, 0), (60, 1), (999, 1), (999, 0)):
        fleet.assign(fleet.reservation(ttl=ttl), slots[slot])
    fleet.clock.advance(seconds=60)
    expire(fleet.context())
    for slot in slots:
        slot.refresh_from_db()
    assert [slot.lease_count for slot in slots] == [1, 1]


def test_the_reservation_of_a_session_does_not_expire(fleet, new_session):
    session = new_session()
    fleet.clock.advance(days=3)
    fleet.tick_without_errors()
    assert phases(session.reservations.all()) == [Phase.PENDING]


def test_reservations_of_other_pools_do_not_expire(fleet):
    reservation = fleet.reservation(ttl=60)
    other = type(fleet.pool).objects.create(name="other")
    type(reservation).objects.filter(pk=reservation.pk).update(pool=other)
    fleet.clock.advance(seconds=60)
    expire(fleet.context())
    assert phases([reservation]) == [Phase.PENDING]


def test_a_renewal_during_the_expire_step_keeps_the_reservation(fleet, monkeypatch):
    reservation = fleet.reservation(ttl=60)
    renewed_at = fleet.clock.advance(seconds=59)
    fleet.clock.advance(seconds=1)

    def renew_first(keys, **fields):
        renew_reservation(reservation=reservation, now=renewed_at)
        return reservations.end_reservations(keys, **fields)

    monkeypatch.setattr(step, "end_reservations", renew_first)
    expire(fleet.context())
    assert phases([reservation]) == [Phase.PENDING]
