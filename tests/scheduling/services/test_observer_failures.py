"""Observers that are late or fail: one event when that begins, one after they recovered."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from lcm.events.catalog import events_data
from lcm.models import ChangeLog
from scheduling.coordination.coordinator import coordinator
from scheduling.models import Observer, ObserverRun
from scheduling.services.observer_failures import announce_failing_observers

MINUTE = timedelta(minutes=1)
NAME = "usage-record"


def ran(now, name=NAME, **fields):
    """Record a run that began now."""
    return ObserverRun.objects.create(observer=name, started_at=now, duration_ms=5, **fields)


def events():
    rows = ChangeLog.objects.filter(event__startswith="observer.").order_by("pk")
    return list(rows.values_list("event", flat=True))


@pytest.mark.parametrize(
    ("minutes", "fields", "event"),
    [
        (10, {"success_count": 1}, []),
        (11, {"success_count": 1}, ["observer.late"]),
        (1, {"failure_count": 1}, ["observer.failed"]),
        (1, {"error": "no table"}, ["observer.failed"]),
        (11, {"error": "no table"}, ["observer.late"]),
    ],
    ids=["in time", "late", "some targets failed", "failed", "failed and late"],
)
def test_an_observer_is_announced_once_when_it_is_late_or_fails(minutes, fields, event, db, now):
    """The interval of the observer is five minutes."""
    ran(now, **fields)
    for _ in range(2):
        announce_failing_observers(now=now + minutes * MINUTE)
    assert events() == event


def test_observers_that_never_ran_are_not_announced(db, now):
    announce_failing_observers(now=now)
    assert events() == []


def test_an_event_names_the_error_and_links_to_the_observer(db, now, client, viewer):
    ran(now, error="no table")
    announce_failing_observers(now=now)
    entry = ChangeLog.objects.get(event="observer.failed")
    assert (entry.object_label, entry.reason, entry.routed) == (NAME, "no table", False)
    page = reverse("observer_detail", args=[NAME])
    (data,) = events_data([entry])
    assert data.url.endswith(page)
    client.force_login(viewer)
    for address in (reverse("change_list"), reverse("change_detail", args=[entry.pk])):
        text = client.get(address).content.decode()
        assert page in text
        assert f"observer {NAME}" in text.lower()


def test_the_recovery_is_announced_once_and_the_next_failure_again(db, now):
    ran(now, error="no table")
    announce_failing_observers(now=now)
    for minutes in (14, 15, 16):
        ran(now + minutes * MINUTE)
        announce_failing_observers(now=now + minutes * MINUTE)
    assert events() == ["observer.failed", "observer.recovered"]
    announce_failing_observers(now=now + 60 * MINUTE)
    assert events()[2:] == ["observer.late"]


def test_an_observer_that_fails_at_every_second_run_is_announced_rarely(db, now):
    for minute in range(0, 180, 3):
        moment = now + minute * MINUTE
        ran(moment, error="no table" if minute % 6 else "")
        announce_failing_observers(now=moment)
    assert 2 <= len(events()) <= 2 * 3 * 4


def test_a_removed_observer_does_not_recover(db, now, monkeypatch):
    ran(now, error="no table")
    announce_failing_observers(now=now)
    monkeypatch.delitem(coordinator.observers, NAME)
    announce_failing_observers(now=now + 20 * MINUTE)
    assert events() == ["observer.failed"]
    (data,) = events_data([ChangeLog.objects.get(event="observer.failed")])
    assert data.url is None


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_processes_that_look_at_once_announce_each_change_once(now, at_once):
    ran(now, error="no table")
    assert at_once(*[lambda: announce_failing_observers(now=now)] * 4) == [None] * 4
    ran(now + 20 * MINUTE)
    assert at_once(*[lambda: announce_failing_observers(now=now + 20 * MINUTE)] * 4) == [None] * 4
    assert events() == ["observer.failed", "observer.recovered"]
    assert Observer.objects.get().failing_announced_at is None
