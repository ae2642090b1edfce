"""CSV and JSON export of lists, streamed page by page so that memory use stays constant."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import get_language, override

from lcm.web.server.database_health import health

if TYPE_CHECKING:
    from lcm.web.list_page import ListPage

CHUNK = 1_000
# Spreadsheets run a cell that starts with one of these as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export(page: ListPage, queryset: QuerySet[Any], *, sort: str, file_format: str) -> StreamingHttpResponse:
    """Stream all rows of a list in the order shown."""
    columns = page.export_columns or page.columns
    # Keys of JSON are for programs and stay English.
    with override(settings.LANGUAGE_CODE if file_format == "json" else get_language()):
        labels = [str(column.export_label or column.label) for column in columns]
    body = _csv if file_format == "csv" else _json
    name = f"{page.file_name or page.export_name}-{timezone.now():%Y%m%d-%H%M}.{file_format}"
    kind = "text/csv; charset=utf-8" if file_format == "csv" else "application/json"
    return StreamingHttpResponse(
        body(labels, _chunks(page, queryset, sort)),
        content_type=kind,
        headers={"Content-Disposition": f'attachment; filename="{name}"', "X-Accel-Buffering": "no"},
    )


def _chunks(page: ListPage, queryset: QuerySet[Any], sort: str) -> Iterator[list[list[Any]]]:
    def read(cursor: str) -> tuple[list[list[Any]], str | None]:
        with health.watched():
            found = page.page_of(queryset, sort=sort, size=CHUNK, cursor=cursor)
            columns = page.export_columns or page.columns
            return [[column.value(row) for column in columns] for row in found.rows], found.next

    cursor: str | None = ""
    while cursor is not None:
        rows, cursor = read(cursor)
        yield rows


def _csv(labels: list[str], chunks: Iterator[list[list[Any]]]) -> Iterator[str]:
    yield csv_text([labels])
    for rows in chunks:
        yield csv_text(rows)


def _json(labels: list[str], chunks: Iterator[list[list[Any]]]) -> Iterator[str]:
    keys = [label.lower().replace(" ", "_") for label in labels]
    separator = "["
    for rows in chunks:
        for row in rows:
            yield separator + json.dumps(dict(zip(keys, row, strict=True)), cls=DjangoJSONEncoder)
            separator = ",\n"
    yield "]\n" if separator != "[" else "[]\n"


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV; spreadsheets do not run its cells as formulas."""
    text = io.StringIO()
    csv.writer(text).writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value
