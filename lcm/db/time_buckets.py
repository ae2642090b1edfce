"""Group rows by time in the database, so that a chart reads as many rows as it draws."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Func, IntegerField


class TimeBucket(Func):
    """The number of whole steps from `origin` to a time; step and origin are whole seconds."""

    template = "((CAST(FLOOR(EXTRACT(EPOCH FROM %(expressions)s)) AS bigint) - %(origin)d) / %(step)d)"
    output_field = IntegerField()

    def __init__(self, column: str, *, origin: datetime, step: timedelta) -> None:
        super().__init__(column, origin=int(origin.timestamp()), step=int(step.total_seconds()))

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        seconds = "CAST(STRFTIME('%%%%s', %(expressions)s) AS integer)"
        template = f"(({seconds} - %(origin)d) / %(step)d)"
        return super().as_sql(compiler, connection, template=template, **extra)
