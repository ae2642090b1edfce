"""`manage.py installation`: show the ID in instance tags; `--new` is for copies of a database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput
from scheduling.services.installation import installation_id, renew_installation


class Command(BaseCommand):
    help = "Show the installation ID. LCM lists and terminates only instances with this ID."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--new",
            metavar="REASON",
            help="create a new ID and record REASON in the change log. Use it for a copy of a database, "
            "before LCM starts on the copy. The existing instances then belong to the original only.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["new"] is None:
            self.stdout.write(installation_id())
            return
        try:
            self.stdout.write(renew_installation(reason=options["new"], actor=SYSTEM))
        except InvalidInput as error:
            raise CommandError(error.message) from error
