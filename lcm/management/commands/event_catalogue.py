"""`manage.py event_catalogue`: print the table of event types in docs/events.md."""

from __future__ import annotations

from django.core.management.base import BaseCommand

from lcm.events.catalog import event_types


class Command(BaseCommand):
    help = "Print the table of event types in docs/events.md."

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(catalogue_table(), ending="")


def catalogue_table() -> str:
    rows = [f"| `{kind.name}` | {kind.severity} | {kind.description} |\n" for kind in event_types().values()]
    return "".join(["| type | severity | meaning |\n", "|---|---|---|\n", *rows])
