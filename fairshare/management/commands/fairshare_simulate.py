"""`manage.py fairshare_simulate FILE`: fair share of a tree in a file, without a database."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from json import dumps, loads
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from fairshare.arithmetic.simulation import InvalidDocument, simulate

_COLUMNS = (
    ("weight", "Weight", 8), ("level_share", "Level share", 12), ("norm_share", "Norm share", 11),
    ("usage", "Usage", 12), ("norm_usage", "Norm usage", 11), ("effective_usage", "Effective", 11),
    ("factor", "Factor", 9), ("level_fair_share", "Level FS", 11), ("rank", "Rank", 5),
)  # fmt: skip


class Command(BaseCommand):
    help = "Shares, factors and ranks of a tree in a JSON file; docs/fairshare.md has the format."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a JSON file, or - for standard input")
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: object, file: str, json: bool, **options: object) -> None:
        try:
            rows = simulate(_read(file))
        except InvalidDocument as error:
            raise CommandError(str(error)) from error
        self.stdout.write(dumps(rows, indent=2, ensure_ascii=False) if json else _as_table(rows))


def _read(name: str) -> Any:
    try:
        return loads(sys.stdin.read() if name == "-" else Path(name).read_text())
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CommandError(f"{name} is not JSON: {error}.") from error


def _as_table(rows: list[dict[str, Any]]) -> str:
    names = ["  " * (len(row["path"]) - 1) + row["path"][-1] for row in rows]
    width = max(len("Subject"), *map(len, names))
    head = f"{'Subject':<{width}}" + "".join(f"{label:>{size}}" for _, label, size in _COLUMNS)
    lines = [
        f"{name:<{width}}" + "".join(f"{_cell(row[key]):>{size}}" for key, _, size in _COLUMNS)
        for name, row in zip(names, rows, strict=True)
    ]
    return "\n".join([head, *lines])


def _cell(value: object) -> str:
    """Format with six decimals, as sshare does; no level fair share means no usage."""
    if value is None:
        return "inf"
    return f"{value:.6f}" if isinstance(value, float) and not value.is_integer() else f"{value:g}"
