"""A pool without a usable runtime: it stops with a reason, and work that needs no runtime continues."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from lcm.models import ChangeLog
from scheduling import tasks
from scheduling.models import AttemptOutcome, Phase, Slot, SlotState
from scheduling.services.pools import update_pool
from tests.support.fleet import phases

S = SlotState
BROKEN = [
    ({"runtime_settings": {"nonsense": 1}}, "nonsense"),
    ({"runtime_settings": []}, "settings"),
    ({"runtime": "magic"}, "There is no runtime “magic”"),
    ({"runtime": "ec2", "runtime_settings": {}}, "region"),
]


@pytest.fixture(autouse=True)
def enqueued(monkeypatch):
    calls = []
    monkeypatch.setattr(tasks.launch_slot, "apply_async", lambda arguments, **_: calls.append(arguments[0]))
    return calls


@pytest.fixture
def real_time(fleet):
    """Tasks use the real clock."""
    fleet.clock.now = timezone.now()
    return fleet


@pytest.mark.parametrize(("wrong", "message"), BROKEN, ids=[str(row[0]) for row in BROKEN])
def test_the_tick_stops_the_pool_once_and_still_places_and_expires(real_time, configure_pool, wrong, message):
    fleet = real_time
    expired = fleet.reservation(ttl=1)
    fleet.slot()
    fleet.clock.advance(seconds=-60)
    waiting = fleet.reservation(16, ttl=9999)
    type(expired).objects.filter(pk=expired.pk).update(expires_at=fleet.clock())
    configure_pool(**wrong)
    for _ in range(3):
        tasks.tick_pool(str(fleet.pool.pk))
        tasks.reconcile(str(fleet.pool.pk))
    assert message in fleet.reload_pool().stopped_reason
    assert phases([expired, waiting]) == [Phase.EXPIRED, Phase.READY]
    assert ChangeLog.objects.get(event="pool.stopped").reason == fleet.pool.stopped_reason
    assert fleet.states() == [S.READY]


def test_nothing_is_launched_and_an_open_attempt_ends(real_time, configure_pool, enqueued):
    fleet = real_time
    fleet.reservation(ttl=9999)
    attempt = fleet.slot(S.LAUNCHING).attempts.get()
    configure_pool(runtime_settings={"nonsense": 1})
    tasks.launch_slot(str(attempt.pk))
    attempt.refresh_from_db()
    assert attempt.outcome in (AttemptOutcome.FAILED, AttemptOutcome.REFUSED)
    assert fleet.states() == [S.EMPTY]
    tasks.tick_pool(str(fleet.pool.pk))
    assert enqueued == []


def test_slots_do_not_change_until_their_deadlines(real_time, configure_pool):
    fleet = real_time
    ready_slot, booting_slot = fleet.slot(), fleet.slot(S.BOOTING)
    configure_pool(runtime_settings={"nonsense": 1})
    tasks.reconcile(str(fleet.pool.pk))
    assert fleet.states() == [S.READY, S.BOOTING]
    Slot.objects.filter(pk=booting_slot.pk).update(state_deadline=timezone.now() - timedelta(seconds=1))
    tasks.reconcile(str(fleet.pool.pk))
    assert fleet.states() == [S.READY, S.TERMINATING]
    assert ready_slot.lease_count == 0


def test_correcting_the_settings_starts_the_pool_again(real_time, configure_pool, as_admin, enqueued):
    fleet = real_time
    fleet.reservation(ttl=9999)
    configure_pool(runtime_settings={"nonsense": 1})
    tasks.tick_pool(str(fleet.pool.pk))
    assert enqueued == []
    update_pool(pool=fleet.reload_pool(), actor=as_admin, reason="mended", runtime_settings={})
    tasks.tick_pool(str(fleet.pool.pk))
    assert (fleet.reload_pool().stopped_reason, len(enqueued)) == ("", 1)
