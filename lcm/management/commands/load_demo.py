"""`manage.py load_demo`: load the demo fleet into an empty database."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from lcm.demo.loader import is_empty, load_demo, run_observers


class Command(BaseCommand):
    help = "Load the demo fleet, unless the database has definitions or projects. Requires DEBUG."

    def handle(self, *args: object, **options: object) -> None:
        if not settings.DEBUG:
            raise CommandError("The demo passwords are public. Load the demo only with DEBUG=true.")
        if is_empty():
            self.stdout.write("Loading the demo fleet …")
            load_demo(now=timezone.now(), live=settings.CONFIG["DEMO_LIVE"])
            run_observers()
