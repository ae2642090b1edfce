"""`manage.py scheduler_snapshot POOL`: print the input of the pool's next cycle as JSON."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from scheduling.capacity.steps.place import QUEUE_HEAD
from scheduling.models import Pool
from scheduling.placement.framework.configuration import read_configuration
from scheduling.placement.framework.snapshot_json import write_snapshot
from scheduling.selectors.snapshots import snapshot_of


class Command(BaseCommand):
    help = "Print the input of the pool's next cycle, for scheduler_replay. Nothing is changed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("pool", help="the name of the pool")

    def handle(self, *args: object, **options: object) -> None:
        pool = Pool.objects.filter(name=options["pool"]).first()
        if pool is None:
            names = ", ".join(Pool.objects.order_by("name").values_list("name", flat=True))
            raise CommandError(f"There is no pool “{options['pool']}”. There are: {names or 'none'}.")
        configuration = read_configuration(pool.scheduler)
        snapshot = snapshot_of(pool, configuration, now=timezone.now(), limit=QUEUE_HEAD)
        self.stdout.write(write_snapshot(snapshot), ending="")
