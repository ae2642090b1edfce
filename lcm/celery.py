"""The Celery application: loaded by `LcmConfig.ready()`, so that `lcm/__init__.py` can stay empty."""

from __future__ import annotations

import gc
import logging
import os
from typing import Any

from celery import Celery, signals
from celery.app.amqp import AMQP
from celery.worker.consumer import Consumer
from kombu.connection import Connection

from lcm.config import logs

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")

logger = logging.getLogger(__name__)

# Longest pause between two attempts to reach a broker that is down.
RECONNECT_SECONDS = 3.0


class BrokerConnection(Connection):
    """A connection that a worker or beat re-establishes within seconds, however long the broker was down."""

    def ensure_connection(self, *args: object, **options: Any) -> Any:
        options = {"interval_max": RECONNECT_SECONDS, **options}
        return super().ensure_connection(*args, **options)  # type: ignore[no-untyped-call]


class BrokerConnections(AMQP):
    Connection = BrokerConnection


class ReconnectingConsumer(Consumer):
    """A consumer that outlives a broker restart (decision 0095)."""

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        # Celery 5.7 closes the connection twice. If the first attempt fails, the second one has no transport
        # left to restore unacknowledged messages, and its AttributeError ends the worker.
        if self.task_consumer is not None:
            self.task_consumer.channel.do_restore = False
        super().on_connection_error_after_connected(exc)

    def call_soon_ack(self, p: Any, *args: Any, **options: Any) -> Any:
        # A task may end after the channel that delivered its message was closed. Acknowledging on a closed
        # channel raises an AttributeError, which ends the worker. The broker redelivers the message.
        message = p.__self__

        def acknowledge(*positional: Any, **keywords: Any) -> None:
            if message.channel.closed:
                logger.warning("late_acknowledgement_dropped", extra={"delivery_tag": message.delivery_tag})
            else:
                p(*positional, **keywords)

        return super().call_soon_ack(acknowledge, *args, **options)


app = Celery("lcm", amqp=BrokerConnections)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.set_default()


@signals.import_modules.connect
def schedule_periodic_tasks(**kwargs: Any) -> None:
    """Build the beat schedule when worker and beat load their tasks: all apps are ready by then."""
    from lcm.periodic import beat_schedule

    app.conf.beat_schedule = beat_schedule()


@signals.setup_logging.connect
def keep_django_logging(**kwargs: Any) -> None:
    """Keep Django's logging configuration: Celery adds none if this signal has a receiver."""


@signals.beat_init.connect
def send_initial_tasks(**kwargs: Any) -> None:
    """Send the first heartbeat at once, so that `/readyz` succeeds without waiting for an interval."""
    from lcm.periodic import all_specs

    app.send_task("lcm.tasks.beat_heartbeat")
    for spec in all_specs():
        if spec.initial_delay is not None:
            delay = min(spec.initial_delay, spec.interval).total_seconds()
            app.send_task(spec.task, args=spec.args, countdown=delay, expires=delay + spec.expires)


@signals.worker_ready.connect
def serve_metrics(**kwargs: Any) -> None:
    from lcm.monitoring.worker_metrics import serve_worker_metrics

    serve_worker_metrics()


@signals.task_prerun.connect
def set_task_id(task_id: str, **kwargs: Any) -> None:
    logs.task_id.set(task_id)


@signals.task_postrun.connect
def count_task(task: Any, state: str | None, **kwargs: Any) -> None:
    from lcm.monitoring import metrics

    metrics.TASKS.labels(task=task.name, result=(state or "unknown").lower()).inc()
    logs.task_id.set("")


@signals.worker_process_init.connect
def freeze_loaded_objects(**kwargs: Any) -> None:
    """Exempt the loaded code from the garbage collector.

    Python delays a full collection until new objects are a quarter of the objects that survived the last one.
    The loaded code has 200,000 objects; frozen objects do not count.
    """
    gc.freeze()
    gc.collect()


@signals.worker_process_shutdown.connect
def drop_process_metrics(pid: int, **kwargs: Any) -> None:
    from lcm.monitoring import metrics

    metrics.mark_process_dead(pid)
