"""Events make the tick come sooner; without them nothing is lost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from kombu.exceptions import OperationalError

from lcm.actors import SYSTEM
from scheduling import tasks
from scheduling.models import SlotState
from scheduling.services.reservations import release_reservation
from scheduling.services.slots import cordon_slot, note_interruption


@pytest.fixture
def sent(monkeypatch):
    """The pools whose tick was asked for."""
    calls = []
    monkeypatch.setattr(tasks.tick_pool, "apply_async", lambda arguments, **_: calls.append(arguments[0]))
    return calls


def claim(fleet, lab):
    fleet.reservation()


def session(fleet, lab):
    lab()


def release(fleet, lab):
    release_reservation(reservation=fleet.reservation(), actor=SYSTEM, now=fleet.clock())


def interruption(fleet, lab):
    slot = fleet.slot()
    note_interruption(slot=slot, deadline=fleet.clock() + timedelta(minutes=2), now=fleet.clock())


def uncordon(fleet, lab):
    slot = fleet.slot(cordoned=True)
    cordon_slot(slot=slot, cordoned=False, reason="fine again", actor=SYSTEM, now=fleet.clock())


def ready(fleet, lab):
    fleet.slot(SlotState.BINDING)
    fleet.reconcile()


@pytest.mark.parametrize("event", [claim, session, release, interruption, uncordon, ready])
def test_what_a_tick_should_see_soon_asks_for_one(
    fleet, lab, sent, event, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        event(fleet, lab)
    assert sent == [str(fleet.pool.pk)]


def test_many_events_within_a_second_ask_for_one_tick(fleet, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(10):
            fleet.reservation()
    assert len(sent) == 1


def test_a_tick_does_not_ask_for_itself(tuned, sent, django_capture_on_commit_callbacks):
    fleet = tuned(min_slots=1)
    fleet.reservation(ttl=1)
    fleet.clock.advance(seconds=1)
    with django_capture_on_commit_callbacks(execute=True):
        fleet.clean_tick()
    assert sent == []


def test_without_a_broker_the_claim_is_made_all_the_same(
    fleet, monkeypatch, django_capture_on_commit_callbacks
):
    def unreachable(*arguments, **options):
        raise OperationalError("no broker")

    monkeypatch.setattr(tasks.tick_pool, "apply_async", unreachable)
    with django_capture_on_commit_callbacks(execute=True):
        fleet.reservation()
    assert fleet.clean_tick().counts["unmet"] == 1
