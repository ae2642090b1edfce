"""Events trigger an early tick; without them the periodic tick does the work."""

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
def enqueued(monkeypatch):
    """The pools whose tick was enqueued."""
    calls = []
    monkeypatch.setattr(tasks.tick_pool, "apply_async", lambda arguments, **_: calls.append(arguments[0]))
    return calls


def reserve(fleet, new_session):
    fleet.reservation()


def request_session(fleet, new_session):
    new_session()


def release(fleet, new_session):
    release_reservation(reservation=fleet.reservation(), actor=SYSTEM, now=fleet.clock())


def interrupt(fleet, new_session):
    slot = fleet.slot()
    record_interruption(slot=slot, deadline=fleet.clock() + timedelta(minutes=2), now=fleet.clock())


def send_heartbeat(fleet, new_session):
    record_heartbeat(slot=fleet.slot(), actor=SYSTEM, now=fleet.clock())


def uncordon(fleet, new_session):
    slot = fleet.slot(cordoned=True)
    cordon_slot(slot=slot, cordoned=False, reason="fine again", actor=SYSTEM, now=fleet.clock())


def become_ready(fleet, new_session):
    fleet.slot(SlotState.BINDING)
    fleet.reconcile()


@pytest.mark.parametrize(
    "event", [reserve, request_session, release, send_heartbeat, interrupt, uncordon, become_ready]
)
def test_relevant_events_trigger_a_tick(
    fleet, new_session, enqueued, event, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        event(fleet, new_session)
    assert enqueued == [str(fleet.pool.pk)]


def test_many_events_within_a_second_trigger_one_tick(fleet, enqueued, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(10):
            fleet.reservation()
    assert len(enqueued) == 1


def test_a_tick_does_not_trigger_itself(configure_pool, enqueued, django_capture_on_commit_callbacks):
    fleet = configure_pool(min_slots=1)
    fleet.reservation(ttl=1)
    fleet.clock.advance(seconds=1)
    with django_capture_on_commit_callbacks(execute=True):
        fleet.tick_without_errors()
    assert enqueued == []


def test_without_a_broker_the_reservation_is_still_created(
    fleet, monkeypatch, django_capture_on_commit_callbacks
):
    monkeypatch.setattr(tasks.tick_pool, "apply_async", raise_unreachable)
    with django_capture_on_commit_callbacks(execute=True):
        fleet.reservation()
    assert fleet.tick_without_errors().counts["unmet"] == 1


def raise_unreachable(*arguments, **options):
    raise OperationalError("no broker")


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_burst_without_a_broker_tries_once_and_warns_once(
    fleet, monkeypatch, caplog, django_capture_on_commit_callbacks
):
    calls = []
    monkeypatch.setattr(
        tasks.tick_pool, "apply_async", lambda *arguments, **_: calls.append(arguments) or raise_unreachable()
    )
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(20):
            fleet.reservation()
            cache.clear()
    assert (len(calls), warnings(caplog)) == (1, ["tick_trigger_failed"])


def test_a_broker_that_is_back_is_used_again(fleet, monkeypatch, enqueued, broker):
    broker.record_failure(OSError("gone"))
    tick_trigger._send(str(fleet.pool.pk))
    assert enqueued == []
    monkeypatch.setattr(broker, "open_until", time.monotonic())
    tick_trigger._send(str(fleet.pool.pk))
    assert enqueued == [str(fleet.pool.pk)]


@pytest.fixture
def silent_address():
    """A port that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


@pytest.mark.parametrize("silent", ["cache", "broker"])
def test_a_broker_that_accepts_connections_and_never_responds_does_not_delay_requests(
    fleet, settings, monkeypatch, silent_address, caplog, django_capture_on_commit_callbacks, silent
):
    if silent == "cache":
        options = {"socket_timeout": 0.5, "socket_connect_timeout": 0.5}
        backend = "django.core.cache.backends.redis.RedisCache"
        settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": silent_address, "OPTIONS": options}}
    connect = partial(current_app.connection_for_write, silent_address)
    monkeypatch.setattr(task_queue, "current_app", SimpleNamespace(connection_for_write=connect))
    start = time.monotonic()
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(10):
            fleet.reservation()
    assert time.monotonic() - start < 20
    assert warnings(caplog) == ["tick_trigger_failed"]


def test_a_run_cannot_be_enqueued_through_a_broker_that_never_responds(monkeypatch, silent_address):
    connect = partial(current_app.connection_for_write, silent_address)
    app = SimpleNamespace(connection_for_write=connect, send_task=current_app.send_task)
    monkeypatch.setattr(task_queue, "current_app", app)
    with pytest.raises(Unavailable):
        task_queue.enqueue_task("lcm.tasks.beat_heartbeat")
