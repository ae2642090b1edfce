"""`manage.py scheduler_replay FILE`: run a cycle over a snapshot, without a database."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduling.placement.framework.configuration import InvalidConfiguration, read_configuration
from scheduling.placement.framework.cycle import run_cycle
from scheduling.placement.framework.results import as_lines, as_result
from scheduling.placement.framework.snapshot_json import InvalidSnapshot, read_snapshot


class Command(BaseCommand):
    help = "Run one cycle over a snapshot and print placements and wait reasons."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="a document of scheduler_snapshot; - reads it from standard input")
        parser.add_argument("--config", help="a pool's scheduler document; default: the default scheduler")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            snapshot = read_snapshot(_text(options["file"]))
            configuration = read_configuration(_text(options["config"]) if options["config"] else "")
        except InvalidSnapshot as error:
            raise CommandError(f"{options['file']} cannot be used.\n{error}") from error
        except InvalidConfiguration as error:
            raise CommandError(f"{options['config']} cannot be used. {error}") from error
        cycle = run_cycle(snapshot, configuration)
        if options["json"]:
            self.stdout.write(json.dumps(as_result(cycle), indent=1, ensure_ascii=False))
        else:
            self.stdout.writelines(f"{line}\n" for line in as_lines(cycle))


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}") from error
