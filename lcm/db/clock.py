"""The database's clock: the one clock that all processes share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.models import BigIntegerField, Func

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS = {
    "postgresql": "CAST(FLOOR(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP()) * 1000) AS bigint)",
    "sqlite": "CAST(ROUND((JULIANDAY('now') - 2440587.5) * 86400000) AS integer)",
}


def milliseconds_sql() -> str:
    """Return the SQL for whole milliseconds since 1970 by the database's clock."""
    return _MILLISECONDS[connection.vendor]


def milliseconds_expression() -> Func:
    """Return whole milliseconds since 1970 by the database's clock as a queryset expression."""
    return Func(template=milliseconds_sql(), output_field=BigIntegerField())


def database_ms() -> int:
    """Return whole milliseconds since 1970 by the database's clock."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {milliseconds_sql()}")
        found: int = cursor.fetchone()[0]
    return found


def database_now() -> datetime:
    return _EPOCH + timedelta(milliseconds=database_ms())
