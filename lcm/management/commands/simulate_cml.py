"""`manage.py simulate_cml`: serve a CML simulator."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from lcm.cml.simulator.command_line import add_arguments, serve


class Command(BaseCommand):
    help = "Serve a simulated CML controller; more can be added at /simulator/controllers."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # Replace Django's own --version with the simulator's.
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *args: object, **options: object) -> None:
        serve(argparse.Namespace(**options), self._write_line)

    def _write_line(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
