"""Asking a worker for something now."""

from __future__ import annotations

from typing import Any

from celery import current_app
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from lcm.domain.errors import Unavailable

EXPIRES_SECONDS = 600
BROKER_TIMEOUT_SECONDS = 0.5


def bounded_connection() -> Any:
    """Return a connection to the broker that fails within a second instead of waiting for a silent broker."""
    bounds = {
        "socket_timeout": BROKER_TIMEOUT_SECONDS,
        "socket_connect_timeout": BROKER_TIMEOUT_SECONDS,
        "max_retries": 0,
    }
    return current_app.connection_for_write(transport_options=bounds)


def send_task(task: str, *args: str, **options: Any) -> None:
    """Enqueue a task; raises the error of the broker within a second if it does not answer."""
    with bounded_connection() as connection:
        current_app.send_task(task, args=args, retry=False, connection=connection, **options)


def enqueue_task(task: str, *args: str) -> None:
    """Have a worker do this soon; refused when nobody can be told."""
    try:
        send_task(task, *args, expires=EXPIRES_SECONDS)
    except (OperationalError, RedisError, OSError) as error:
        raise Unavailable("The broker cannot be reached, so that no worker can be asked.") from error
