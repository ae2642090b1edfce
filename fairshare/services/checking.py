"""Asking for a comparison of records and buckets."""

from __future__ import annotations

from celery import current_app
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from lcm.errors import Unavailable


def ask_for_check() -> None:
    """Have a worker compare soon; refused when nobody can be told."""
    try:
        current_app.send_task("fairshare.tasks.check_usage", expires=600, retry=False)
    except (OperationalError, RedisError, OSError) as error:
        raise Unavailable("The broker cannot be reached, so that no worker can be asked.") from error
