"""Reservations without a session: created, renewed, released, cancelled, and rejected requests."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.resources import Amounts
from lcm.models import ChangeLog
from scheduling.models import Phase, Pool, Reservation
from scheduling.services.pool_choice import choose_pool
from scheduling.services.pools import create_pool
from scheduling.services.reservations import (
    cancel_reservation,
    create_reservation,
    release_reservation,
    renew_reservation,
    reserve_for_session,
)
from tests.support.fleet import phases

CPU = {"cpu_cores": Decimal(1)}


def test_a_reservation_waits_with_a_ttl_of_twenty_minutes(fleet, as_operator):
    reservation = create_reservation(
        holder="ci", resources=CPU, pool="cml-eu", actor=as_operator, now=fleet.clock()
    )
    reservation.refresh_from_db()
    assert (reservation.phase, reservation.slot, reservation.ttl_seconds) == (Phase.PENDING, None, 1200)
    assert reservation.expires_at == fleet.clock() + timedelta(seconds=1200)
    assert (reservation.cpu_cores, reservation.memory_gb, reservation.gpu, reservation.attempt) == (
        1,
        0,
        0,
        1,
    )
    assert ChangeLog.objects.get(event="reservation.created").actor == "otto"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"ttl": -5}, "ttl"),
        ({"ttl": 0}, "ttl"),
        ({"ttl": 86_401}, "ttl"),
        ({"holder": " "}, "holder"),
        ({"holder": "x" * 101}, "holder"),
        ({"priority": 7}, "priority"),
        ({"priority": -1}, "priority"),
        ({"pool": "no-such-pool"}, "pool"),
        ({"pool": ""}, "pool"),
        ({"pool": "", "system": "no-such-system"}, "pool"),
        ({"resources": {}}, "resources"),
        ({"resources": {"cpu_cores": Decimal(0)}}, "resources"),
        ({"resources": {"cpu_cores": Decimal(-1)}}, "resources.cpu_cores"),
        ({"resources": {"cpu_cores": Decimal("NaN")}}, "resources.cpu_cores"),
        ({"resources": {"memory_gb": Decimal("Infinity")}}, "resources.memory_gb"),
        ({"resources": {"coffee": Decimal(1)}}, "resources.coffee"),
        ({"resources": {"cpu_cores": Decimal(17)}}, "pool"),
        ({"resources": {"gpu": Decimal(1)}}, "pool"),
        ({"resources": {"cpu_cores": Decimal(17)}, "pool": "", "system": "cml"}, "pool"),
    ],
)
def test_invalid_input_is_rejected_by_field_and_changes_nothing(fleet, as_operator, wrong, field):
    arguments = {
        "holder": "ci",
        "resources": CPU,
        "pool": "cml-eu",
        "actor": as_operator,
        "now": fleet.clock(),
    }
    with pytest.raises(InvalidInput) as error:
        create_reservation(**{**arguments, **wrong})
    assert list(error.value.fields) == [field]
    assert not Reservation.objects.exists()
    assert not ChangeLog.objects.filter(event="reservation.created").exists()


def test_a_reservation_larger_than_any_slot_names_the_scarce_resources(fleet):
    text = "has 17 cores; the largest has 16. No slot of cml-eu has 65 GB memory; the largest has 64."
    with pytest.raises(InvalidInput, match=text):
        fleet.reservation(resources={"cpu_cores": Decimal(17), "memory_gb": Decimal(65)})


def test_a_disabled_pool_accepts_no_reservations(configure_pool):
    fleet = configure_pool(enabled=False)
    with pytest.raises(InvalidInput, match="is disabled"):
        fleet.reservation()
    with pytest.raises(InvalidInput, match="No pool for cml is enabled"):
        fleet.reservation(pool="", system="cml")


@pytest.mark.parametrize(
    ("waiting", "stopped", "chosen"),
    [
        ({"cml-eu": 2, "cml-us": 1}, [], "cml-us"),
        ({"cml-eu": 1, "cml-us": 1}, [], "cml-eu"),
        ({"cml-eu": 1, "cml-us": 0}, ["cml-us"], "cml-eu"),
        ({}, [], "cml-eu"),
    ],
    ids=["the shorter queue", "a tie by name", "not a stopped pool", "no queue"],
)
def test_a_reservation_by_system_uses_the_pool_with_the_shortest_queue(fleet, waiting, stopped, chosen):
    Pool.objects.create(name="cml-us")
    Pool.objects.create(name="other", system="other")
    for name, count in waiting.items():
        for _ in range(count):
            fleet.reservation(pool=name)
    Pool.objects.filter(name__in=stopped).update(stopped_reason="broken")
    assert fleet.reservation(pool="", system="cml").pool.name == chosen


def test_renewing_restarts_the_ttl(fleet):
    reservation = fleet.reservation(ttl=60)
    for _ in range(5):
        fleet.clock.advance(seconds=59)
        renew_reservation(reservation=reservation, now=fleet.clock())
        fleet.tick_without_errors()
    reservation.refresh_from_db()
    assert (reservation.phase, reservation.expires_at) == (
        Phase.PENDING,
        fleet.clock() + timedelta(seconds=60),
    )


@pytest.mark.parametrize("has_ticked", [False, True], ids=["before the tick", "after the tick"])
def test_renewing_an_expired_reservation_is_always_a_conflict(fleet, has_ticked):
    reservation = fleet.reservation(ttl=60)
    fleet.clock.advance(seconds=60)
    if has_ticked:
        fleet.tick_without_errors()
    with pytest.raises(StateConflict, match="expired") as error:
        renew_reservation(reservation=reservation, now=fleet.clock())
    assert error.value.status == 409
    fleet.tick_without_errors()
    assert phases([reservation]) == [Phase.EXPIRED]


@pytest.mark.parametrize(("placed", "phase"), [(False, Phase.CANCELLED), (True, Phase.RELEASED)])
def test_release_is_idempotent(fleet, as_operator, placed, phase):
    slot = fleet.slot()
    reservation, other = fleet.reservation(), fleet.reservation()
    fleet.assign(other, slot)
    if placed:
        fleet.assign(reservation, slot)
    first = fleet.clock.advance(seconds=5)
    for _ in range(2):
        release_reservation(reservation=reservation, actor=as_operator, now=fleet.clock())
        fleet.clock.advance(seconds=5)
    slot.refresh_from_db()
    assert (reservation.phase, reservation.released_at, slot.lease_count) == (phase, first, 1)
    assert ChangeLog.objects.filter(event="reservation.released").count() == 1


@pytest.mark.parametrize("placed", [False, True])
def test_an_operator_cancels_a_reservation_once(fleet, as_operator, placed):
    slot = fleet.slot()
    reservation = fleet.reservation()
    if placed:
        fleet.assign(reservation, slot)
    arguments = {
        "reservation": reservation,
        "actor": as_operator,
        "now": fleet.clock(),
        "reason": "class is over",
    }
    assert cancel_reservation(**arguments).phase == Phase.CANCELLED
    with pytest.raises(StateConflict, match="cancelled already"):
        cancel_reservation(**arguments)
    slot.refresh_from_db()
    assert (slot.lease_count, reservation.reason) == (0, "class is over")


@pytest.mark.parametrize("end_reservation", [release_reservation, cancel_reservation])
def test_ended_reservations_cannot_be_renewed(fleet, as_operator, end_reservation):
    reservation = fleet.reservation()
    reason = {"reason": "over"} if end_reservation is cancel_reservation else {}
    end_reservation(reservation=reservation, actor=as_operator, now=fleet.clock(), **reason)
    with pytest.raises(StateConflict, match="is cancelled and cannot be renewed"):
        renew_reservation(reservation=reservation, now=fleet.clock())


def test_the_reservation_of_a_session_cannot_be_ended_directly(fleet, new_session, as_operator):
    reservation = new_session().reservations.get()
    with pytest.raises(StateConflict, match="cancel the session instead"):
        release_reservation(reservation=reservation, actor=as_operator, now=fleet.clock())
    with pytest.raises(StateConflict, match="cancel the session instead"):
        cancel_reservation(reservation=reservation, actor=as_operator, now=fleet.clock(), reason="no")
    with pytest.raises(StateConflict, match="needs no renewal"):
        renew_reservation(reservation=reservation, now=fleet.clock())
    assert phases([reservation]) == [Phase.PENDING]


def test_a_session_has_at_most_one_active_reservation(fleet, new_session):
    from django.db import IntegrityError, transaction

    session = new_session()
    with pytest.raises(IntegrityError), transaction.atomic():
        reserve_for_session(session=session, now=fleet.clock())
    assert session.reservations.count() == 1


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_cancelling_a_reservation_requires_a_reason(fleet, as_operator, reason):
    reservation = fleet.reservation()
    with pytest.raises(InvalidInput) as error:
        cancel_reservation(reservation=reservation, actor=as_operator, now=fleet.clock(), reason=reason)
    assert "reason" in error.value.fields
    assert phases([reservation]) == [Phase.PENDING]


def test_a_pool_with_enough_ports_is_chosen(fleet, configure_pool):
    configure_pool(first_port=2000, last_port=2001)
    roomy = create_pool(name="cml-roomy", actor=SYSTEM)
    arguments = {"name": "", "system": "cml", "requested": Amounts(), "now": fleet.clock()}
    few, many = ({**arguments, "ports": count} for count in (2, 3))
    fleet.reservation(pool="cml-roomy")
    assert choose_pool(**few) == fleet.pool
    assert choose_pool(**many) == roomy
    with pytest.raises(InvalidInput, match="No pool for cml can hold this"):
        choose_pool(**{**many, "ports": 9_999})
    with pytest.raises(InvalidInput, match="ports requested: 3, per slot: 2"):
        choose_pool(**{**many, "name": "cml-eu"})


def test_a_reservation_for_a_system_is_rejected_by_a_pool_of_another(fleet):
    with pytest.raises(InvalidInput, match="The pool cml-eu is for cml, not for gpu"):
        fleet.reservation(system="gpu")
    assert fleet.reservation(system="cml").pool == fleet.pool
