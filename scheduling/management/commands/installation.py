"""`manage.py installation`: show the id in instance tags; `--new` is for copies of a database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput
from scheduling.services.installation import installation_id, renew_installation


class Command(BaseCommand):
    help = "Show the installation id. LCM lists and terminates only instances with this id."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--new",
            metavar="REASON",
            help="take a new id and say why; for a copy of a database, before LCM is started on it: "
            "all instances launched so far are then left to the LCM they belong to",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["new"] is None:
            self.stdout.write(installation_id())
            return
        try:
            self.stdout.write(renew_installation(reason=options["new"], actor=SYSTEM))
        except InvalidInput as error:
            raise CommandError(error.message) from error
