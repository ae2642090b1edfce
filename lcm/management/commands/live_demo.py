"""Let the demo fleet live until stopped; `manage.py up` starts this with the demo."""

from __future__ import annotations

import signal
import threading
from random import Random
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, close_old_connections
from django.utils import timezone

from lcm.demo.activity import DemoActivity

PAUSE_SECONDS = 8.0


class Command(BaseCommand):
    help = "Ask for sessions, call some off, take a worker away now and then. Needs DEMO."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This is for the demo only: set DEMO.")
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        life = DemoActivity(Random())  # noqa: S311  (a demo, not a secret)
        while not stop.wait(PAUSE_SECONDS):
            try:
                life.step(now=timezone.now())
            except OperationalError as error:
                self.stderr.write(f"The demo waits for the database: {error}")
            finally:
                close_old_connections()
