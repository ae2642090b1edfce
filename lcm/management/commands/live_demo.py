"""`manage.py live_demo`: simulate activity in the demo fleet; `manage.py up` starts it with the demo."""

from __future__ import annotations

import signal
import threading
from random import Random

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, close_old_connections
from django.utils import timezone

from lcm.demo.activity import DemoActivity

PAUSE_SECONDS = 8.0


class Command(BaseCommand):
    help = "Request and cancel demo sessions and interrupt workers until stopped. Requires DEMO."

    def handle(self, *args: object, **options: object) -> None:
        if not settings.DEMO:
            raise CommandError("live_demo works in the demo only. Set DEMO=true.")
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        activity = DemoActivity(Random())  # noqa: S311  (a demo, not a secret)
        while not stop.wait(PAUSE_SECONDS):
            try:
                activity.step(now=timezone.now())
            except OperationalError as error:
                self.stderr.write(f"The database does not respond. The demo retries: {error}")
            finally:
                close_old_connections()
