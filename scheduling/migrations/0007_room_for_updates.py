"""Rows that change often get room beside them, so that a change that no index sees stays on its page."""

from __future__ import annotations

from typing import Any

from django.db import migrations

TABLES = ("lcm_labletsession", "lcm_kernel", "scheduling_reservation", "scheduling_slot")


def leave_room(apps: Any, schema_editor: Any) -> None:
    _set(schema_editor, "SET (fillfactor = 75)")


def pack(apps: Any, schema_editor: Any) -> None:
    _set(schema_editor, "RESET (fillfactor)")


def _set(schema_editor: Any, what: str) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for table in TABLES:
            schema_editor.execute(f'ALTER TABLE "{table}" {what}')


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0006_promised_wait")]
    operations = [migrations.RunPython(leave_room, pack)]
