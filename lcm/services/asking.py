"""Asking a worker for something now."""

from __future__ import annotations

from celery import current_app
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from lcm.errors import Unavailable

EXPIRES_SECONDS = 600


def ask_worker(task: str, *args: str) -> None:
    """Have a worker do this soon; refused when nobody can be told."""
    try:
        current_app.send_task(task, args=args, expires=EXPIRES_SECONDS, retry=False)
    except (OperationalError, RedisError, OSError) as error:
        raise Unavailable("The broker cannot be reached, so that no worker can be asked.") from error
