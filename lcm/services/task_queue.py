"""Enqueue Celery tasks with bounded waits for the broker."""

from __future__ import annotations

from typing import Any

from celery import current_app
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from lcm.domain.errors import Unavailable

EXPIRES_SECONDS = 600
BROKER_TIMEOUT_SECONDS = 0.5


def bounded_connection() -> Any:
    """Return a connection to the broker that fails within a second if the broker does not respond."""
    bounds = {
        "socket_timeout": BROKER_TIMEOUT_SECONDS,
        "socket_connect_timeout": BROKER_TIMEOUT_SECONDS,
        "max_retries": 0,
    }
    return current_app.connection_for_write(transport_options=bounds)


def send_task(task: str, *args: str, **options: Any) -> None:
    """Enqueue a task; raise the broker's error within a second if the broker does not respond."""
    with bounded_connection() as connection:
        current_app.send_task(task, args=args, retry=False, connection=connection, **options)


def enqueue_task(task: str, *args: str) -> None:
    """Enqueue a task; raise Unavailable if the broker is down."""
    try:
        send_task(task, *args, expires=EXPIRES_SECONDS)
    except (OperationalError, RedisError, OSError) as error:
        raise Unavailable(
            _("The broker cannot be reached, so the task was not enqueued. Try again in a few seconds.")
        ) from error
