"""Beat schedule and core tasks. Every task is idempotent."""

import gc
from datetime import timedelta
from types import SimpleNamespace

import pytest
from celery import current_app, signals
from django.contrib.sessions.models import Session

from fairshare.periodic import specs as fair_share_specs
from lcm.celery import ReconnectingConsumer
from lcm.models import Heartbeat, IdempotentResponse
from lcm.periodic import beat_schedule, specs
from lcm.services import maintenance
from lcm.tasks import beat_heartbeat, clean_up
from observations.periodic import specs as observation_specs
from scheduling.periodic import specs as capacity_specs


def test_the_schedule_has_an_entry_for_every_spec():
    schedule = beat_schedule()
    all_specs = [*specs(), *capacity_specs(), *fair_share_specs(), *observation_specs()]
    assert {spec.name for spec in all_specs} == set(schedule)
    assert {"lcm.tasks.beat_heartbeat", "lcm.tasks.clean_up"} <= {
        entry["task"] for entry in schedule.values()
    }


def test_intervals_come_from_the_settings(settings):
    settings.CONFIG |= {"BEAT_HEARTBEAT_INTERVAL": 2.5, "CLEANUP_INTERVAL": 60.0}
    schedule = beat_schedule()
    assert schedule["beat-heartbeat"]["schedule"] == 2.5
    assert schedule["cleanup"]["schedule"] == 60.0


def test_a_run_expires_after_one_interval_but_not_within_5_seconds(settings):
    settings.CONFIG |= {"BEAT_HEARTBEAT_INTERVAL": 0.2, "CLEANUP_INTERVAL": 60.0}
    expiries = {name: entry["options"]["expires"] for name, entry in beat_schedule().items()}
    assert (expiries["beat-heartbeat"], expiries["cleanup"]) == (5.0, 60.0)


def test_every_scheduled_task_exists():
    current_app.loader.import_default_modules()
    assert {entry["task"] for entry in beat_schedule().values()} <= set(current_app.tasks)


def test_lost_tasks_are_redelivered():
    assert current_app.conf.task_acks_late
    assert current_app.conf.task_reject_on_worker_lost
    assert current_app.conf.worker_prefetch_multiplier == 1


def test_a_worker_process_exempts_its_loaded_code_from_the_garbage_collector():
    gc.unfreeze()
    try:
        signals.worker_process_init.send(sender=None)
        assert gc.get_freeze_count() > 50_000
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_message_is_acknowledged_only_on_an_open_channel(is_closed):
    acknowledged = []

    class Message:
        """A kombu message after a broker restart: its channel is closed and has no connection."""

        delivery_tag = "1"
        channel = SimpleNamespace(closed=is_closed)

        def ack_log_error(self, *errors):
            if self.channel.closed:
                raise AttributeError("'NoneType' object has no attribute 'client'")
            acknowledged.append(errors)

    consumer = ReconnectingConsumer.__new__(ReconnectingConsumer)
    consumer.hub = SimpleNamespace(call_soon=lambda call: call())
    consumer.call_soon_ack(Message().ack_log_error, OSError)
    assert acknowledged == ([] if is_closed else [(OSError,)])


def test_the_heartbeat_is_one_row_with_the_latest_time(db, time_machine, now):
    for minutes in (0, 5):
        time_machine.move_to(now + timedelta(minutes=minutes), tick=False)
        beat_heartbeat()
        beat_heartbeat()
    assert list(Heartbeat.objects.values_list("name", "at")) == [("beat", now + timedelta(minutes=5))]


@pytest.fixture
def responses(db, now, settings):
    """Idempotent responses from 23 and 25 hours ago, with a retention of 24 hours."""
    settings.CONFIG["IDEMPOTENCY_HOURS"] = 24
    for hours in (23, 25):
        IdempotentResponse.objects.create(
            principal="me", key=f"{hours} h", fingerprint="f", created_at=now - timedelta(hours=hours)
        )


def stored_keys():
    return list(IdempotentResponse.objects.values_list("key", flat=True))


def test_clean_up_removes_only_expired_responses(responses):
    clean_up()
    assert stored_keys() == ["23 h"]
    clean_up()
    assert stored_keys() == ["23 h"]


def test_clean_up_respects_the_retention_setting(responses, settings):
    settings.CONFIG["IDEMPOTENCY_HOURS"] = 26
    clean_up()
    assert len(stored_keys()) == 2


def test_clean_up_removes_expired_sign_in_sessions(db, now):
    for key, days in (("over", -1), ("good", 1)):
        Session.objects.create(session_key=key, session_data="", expire_date=now + timedelta(days=days))
    clean_up()
    clean_up()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["good"]


def test_one_clean_up_removes_all_batches(responses, now, monkeypatch):
    monkeypatch.setattr(maintenance, "BATCH", 2)
    old = now - timedelta(days=2)
    IdempotentResponse.objects.bulk_create(
        [IdempotentResponse(principal="me", key=f"k{n}", fingerprint="f", created_at=old) for n in range(7)]
    )
    clean_up()
    assert stored_keys() == ["23 h"]
