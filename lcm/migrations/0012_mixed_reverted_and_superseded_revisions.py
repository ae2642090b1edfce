"""Revisions keep the basis of each resource; mixed, reverted and superseded ones are recorded as such."""

from decimal import Decimal
from typing import Any

from django.db import migrations, models
from django.db.models import F, OuterRef, Q, Subquery

RESOURCES = ("cpu_cores", "memory_gb", "storage_gb", "gpu")
BASES = ["imported", "custom", "max", "avg", "p95", "latest", "recommended", "mixed", "revert"]
OUTCOMES = ["watching", "verified", "regressed", "superseded"]


def derive_bases_and_outcomes(apps: Any, schema_editor: Any) -> None:
    """From the evidence, the requirements before, and the next revision."""
    revisions = apps.get_model("lcm", "DefinitionRevision").objects
    for revision in revisions.defer("port_template").order_by().iterator(chunk_size=1_000):
        revision.basis, revision.bases = _derived(revision)
        revision.save(update_fields=["basis", "bases"])
    watching = revisions.filter(outcome="watching")
    is_current = Q(pk=F("definition__current_revision"))
    watching.filter(is_current, number=1).update(outcome=None)
    following = revisions.filter(definition=OuterRef("definition"), number=OuterRef("number") + 1)
    replaced = watching.exclude(is_current)
    replaced.update(outcome="superseded", outcome_at=Subquery(following.values("created_at")[:1]))


def _derived(revision: Any) -> tuple[str, dict[str, dict[str, str | None]]]:
    applied = (revision.aggregate or {}).get("resources", {})
    before = (revision.before or {}).get("requirements", {})
    picks = {each["choice"] for each in applied.values()} - {"keep"}
    if revision.reverts_id:
        basis = "revert"
    elif picks:
        basis = picks.pop() if len(picks) == 1 else "mixed"
    else:
        basis = revision.basis
    bases: dict[str, dict[str, str | None]] = {}
    for name in RESOURCES:
        if name in applied:
            choice = applied[name]["choice"]
            source = None if choice in ("keep", "custom") else applied[name]["basis"]
            bases[name] = {"basis": choice, "source": source}
        else:
            is_kept = name in before and Decimal(before[name]) == getattr(revision, name)
            bases[name] = {"basis": "keep" if is_kept else basis, "source": None}
    return basis, bases


class Migration(migrations.Migration):
    dependencies = [("lcm", "0011_definition_without_topology")]

    operations = [
        migrations.RemoveConstraint(model_name="definitionrevision", name="revision_basis_known"),
        migrations.RemoveConstraint(model_name="definitionrevision", name="revision_outcome_known"),
        migrations.AddField(
            model_name="definitionrevision",
            name="bases",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="Resource → its basis (or keep) and source (used, allocated or none).",
            ),
        ),
        migrations.AlterField(
            model_name="definitionrevision",
            name="basis",
            field=models.CharField(
                choices=[
                    ("imported", "Imported"),
                    ("custom", "Custom"),
                    ("max", "Max"),
                    ("avg", "Avg"),
                    ("p95", "p95"),
                    ("latest", "Latest"),
                    ("recommended", "Recommended"),
                    ("mixed", "Mixed"),
                    ("revert", "Revert"),
                ],
                max_length=11,
            ),
        ),
        migrations.AlterField(
            model_name="definitionrevision",
            name="outcome",
            field=models.CharField(
                blank=True,
                choices=[
                    ("watching", "Watching"),
                    ("verified", "Verified"),
                    ("regressed", "Regressed"),
                    ("superseded", "Superseded"),
                ],
                default="watching",
                help_text="None for an import: it changed nothing that sessions could verify.",
                max_length=10,
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="definitionrevision",
            constraint=models.CheckConstraint(condition=Q(basis__in=BASES), name="revision_basis_known"),
        ),
        migrations.AddConstraint(
            model_name="definitionrevision",
            constraint=models.CheckConstraint(condition=Q(outcome__in=OUTCOMES), name="revision_outcome_known"),
        ),
        migrations.RunPython(derive_bases_and_outcomes, migrations.RunPython.noop),
    ]
