"""Rename the fields of stored observations: node_id, interface_id, ram_mb, and the controller's name."""

from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

BATCH = 200
COLUMNS = ("observed_resources", "peak_resources")


def renamed(body: dict[str, Any] | None) -> dict[str, Any] | None:
    """A stored observation with the names of today; one that has them already stays as it is."""
    if not body:
        return body
    body = dict(body)
    if body.get("observer") not in (None, "lablet-controller", "manual"):
        body["controller"] = body["observer"]
        body["observer"] = "lablet-controller"
    if isinstance(body.get("node_definitions_used"), dict):
        body["node_definitions_used"] = sorted(body["node_definitions_used"])
    if body.get("nodes"):
        body["nodes"] = [node_renamed(node) for node in body["nodes"]]
    return body


def node_renamed(node: dict[str, Any]) -> dict[str, Any]:
    if node.get("interfaces"):
        node = {**node, "interfaces": [moved(each, "id", "interface_id") for each in node["interfaces"]]}
    return moved(moved(node, "id", "node_id"), "memory_mb", "ram_mb")


def moved(values: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    if old not in values:
        return values
    return {new if key == old else key: value for key, value in values.items() if key != new}


def rename_fields(apps: Apps, schema_editor: BaseDatabaseSchemaEditor | None) -> None:
    rows = apps.get_model("observations", "SessionObservation").objects
    batch = []
    for row in rows.only(*COLUMNS).order_by("pk").iterator(chunk_size=BATCH):
        for name in COLUMNS:
            setattr(row, name, renamed(getattr(row, name)))
        batch.append(row)
        if len(batch) == BATCH:
            rows.bulk_update(batch, COLUMNS)
            batch = []
    rows.bulk_update(batch, COLUMNS)


class Migration(migrations.Migration):
    dependencies = [("observations", "0009_names_of_controllers_that_ended")]

    operations = [migrations.RunPython(rename_fields, migrations.RunPython.noop)]
