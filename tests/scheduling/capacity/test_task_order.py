"""Ticks have priority over launches in a real broker."""

from __future__ import annotations

from uuid import uuid4

import pytest
from celery import current_app

from scheduling import tasks


@pytest.mark.integration
def test_a_tick_is_delivered_before_waiting_launches():
    queue = f"order-{uuid4().hex}"
    for _ in range(3):
        tasks.launch_slot.apply_async(("a",), queue=queue, priority=tasks.AFTER_TICKS)
    tasks.tick_pool.apply_async(("p",), queue=queue)
    with current_app.connection_for_read() as connection, connection.channel() as channel:
        waiting = [channel.basic_get(queue, no_ack=True).headers["task"] for _ in range(4)]
        channel.queue_delete(queue)
    assert waiting == ["scheduling.tasks.tick_pool"] + ["scheduling.tasks.launch_slot"] * 3
