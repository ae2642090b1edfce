"""`manage.py rebuild_aggregates [--check] [name …]`: compute aggregates from the rows and compare."""

from __future__ import annotations

import argparse

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from lcm.models import LabletDefinition
from observations.services.aggregates import rebuild_definition


class Command(BaseCommand):
    help = "Recompute the aggregates of definitions from their sessions; report and repair differences."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", help="Names of definitions; default: all.")
        parser.add_argument("--check", action="store_true", help="Only compare; fail if anything differs.")

    def handle(self, *args: object, names: list[str], check: bool, **options: object) -> None:
        rows = LabletDefinition.objects.select_related("current_revision").defer("topology_yaml", "links")
        if names:
            rows = rows.filter(name__in=names)
        checked = different = 0
        for definition in rows.order_by("pk").iterator(chunk_size=200):
            checked += 1
            found = rebuild_definition(definition=definition, now=timezone.now(), check=check)
            different += bool(found)
            for each in found:
                self.stdout.write(f"{each.definition}: {each.what}")
        if not checked:
            raise CommandError("Definition not found.")
        if check:
            self.stdout.write(f"{checked:,} definitions checked, {different:,} different.")
        else:
            self.stdout.write(f"{checked:,} definitions checked, {different:,} repaired.")
        if check and different:
            raise CommandError(
                "Aggregates differ from the sessions; run the command without --check to repair them."
            )
