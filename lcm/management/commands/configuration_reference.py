"""`manage.py configuration_reference`: print docs/configuration.md."""

from __future__ import annotations

from django.core.management.base import BaseCommand

from lcm.config.reference import settings_reference


class Command(BaseCommand):
    help = "Print docs/configuration.md, generated from lcm/config/environment.py."

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(settings_reference(), ending="")
