"""Events trigger an early tick; without them nothing is lost."""

from __future__ import annotations

import logging
import socket
import time
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import pytest
from celery import current_app
from django.core.cache import cache
from kombu.exceptions import OperationalError

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import Unavailable
from lcm.services import task_queue
from scheduling import tasks
from scheduling.capacity import tick_trigger
from scheduling.models import SlotState
from scheduling.services.heartbeats import record_heartbeat
from scheduling.services.reservations import release_reservation
from scheduling.services.slots import cordon_slot, record_interruption


@pytest.fixture(autouse=True)
def broker(monkeypatch):
    """The circuit breaker in its initial state."""
    monkeypatch.setattr(tick_trigger, "broker", tick_trigger.BrokerCircuitBreaker())
    return tick_trigger.broker


@pytest.fixture
def sent(monkeypatch):
    """The pools whose tick was enqueued."""
    calls = []
    monkeypatch.setattr(tasks.tick_pool, "apply_async", lambda arguments, **_: calls.append(arguments[0]))
    return calls


def claim(fleet, new_session):
    fleet.reservation()


def session(fleet, new_session):
    new_session()


def release(fleet, new_session):
    release_reservation(reservation=fleet.reservation(), actor=SYSTEM, now=fleet.clock())


def interruption(fleet, new_session):
    slot = fleet.slot()
    record_interruption(slot=slot, deadline=fleet.clock() + timedelta(minutes=2), now=fleet.clock())


def heartbeat(fleet, new_session):
    record_heartbeat(slot=fleet.slot(), actor=SYSTEM, now=fleet.clock())


def uncordon(fleet, new_session):
    slot = fleet.slot(cordoned=True)
    cordon_slot(slot=slot, cordoned=False, reason="fine again", actor=SYSTEM, now=fleet.clock())


def ready(fleet, new_session):
    fleet.slot(SlotState.BINDING)
    fleet.reconcile()


@pytest.mark.parametrize("event", [claim, session, release, heartbeat, interruption, uncordon, ready])
def test_relevant_events_trigger_a_tick(fleet, new_session, sent, event, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        event(fleet, new_session)
    assert sent == [str(fleet.pool.pk)]


def test_many_events_within_a_second_trigger_one_tick(fleet, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(10):
            fleet.reservation()
    assert len(sent) == 1


def test_a_tick_does_not_trigger_itself(configure_pool, sent, django_capture_on_commit_callbacks):
    fleet = configure_pool(min_slots=1)
    fleet.reservation(ttl=1)
    fleet.clock.advance(seconds=1)
    with django_capture_on_commit_callbacks(execute=True):
        fleet.tick_without_errors()
    assert sent == []


def test_without_a_broker_the_claim_is_made_all_the_same(
    fleet, monkeypatch, django_capture_on_commit_callbacks
):
    monkeypatch.setattr(tasks.tick_pool, "apply_async", unreachable)
    with django_capture_on_commit_callbacks(execute=True):
        fleet.reservation()
    assert fleet.tick_without_errors().counts["unmet"] == 1


def unreachable(*arguments, **options):
    raise OperationalError("no broker")


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_burst_without_a_broker_calls_it_once_and_warns_once(
    fleet, monkeypatch, caplog, django_capture_on_commit_callbacks
):
    asked = []
    monkeypatch.setattr(
        tasks.tick_pool, "apply_async", lambda *given, **_: asked.append(given) or unreachable()
    )
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(20):
            fleet.reservation()
            cache.clear()
    assert (len(asked), warnings(caplog)) == (1, ["tick_trigger_failed"])


def test_a_broker_that_is_back_is_used_again(fleet, monkeypatch, sent, broker):
    broker.record_failure(OSError("gone"))
    tick_trigger._send(str(fleet.pool.pk))
    assert sent == []
    monkeypatch.setattr(broker, "open_until", time.monotonic())
    tick_trigger._send(str(fleet.pool.pk))
    assert sent == [str(fleet.pool.pk)]


@pytest.fixture
def silent_address():
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


@pytest.mark.parametrize("silent", ["cache", "broker"])
def test_a_broker_that_takes_calls_and_never_answers_does_not_slow_the_request(
    fleet, settings, monkeypatch, silent_address, caplog, django_capture_on_commit_callbacks, silent
):
    if silent == "cache":
        options = {"socket_timeout": 0.5, "socket_connect_timeout": 0.5}
        backend = "django.core.cache.backends.redis.RedisCache"
        settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": silent_address, "OPTIONS": options}}
    reach = partial(current_app.connection_for_write, silent_address)
    monkeypatch.setattr(task_queue, "current_app", SimpleNamespace(connection_for_write=reach))
    begun = time.monotonic()
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(10):
            fleet.reservation()
    assert time.monotonic() - begun < 20
    assert warnings(caplog) == ["tick_trigger_failed"]


def test_a_run_cannot_be_enqueued_through_a_broker_that_never_answers(monkeypatch, silent_address):
    reach = partial(current_app.connection_for_write, silent_address)
    app = SimpleNamespace(connection_for_write=reach, send_task=current_app.send_task)
    monkeypatch.setattr(task_queue, "current_app", app)
    with pytest.raises(Unavailable):
        task_queue.enqueue_task("lcm.tasks.beat_heartbeat")
