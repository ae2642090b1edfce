"""Definitions say since when they wait for a review, revisions when their outcome was decided."""

from typing import Any

from django.db import migrations, models
from django.db.models import F, Q


def tell_since_when(apps: Any, schema_editor: Any) -> None:
    """As the change log has it; where that is silent, when the row was changed last or made."""
    changes = apps.get_model("lcm", "ChangeLog").objects.filter(object_type="labletdefinition")
    definitions = apps.get_model("lcm", "LabletDefinition").objects.filter(needs_review=True)
    raised = changes.filter(event="review_raised").order_by("-at")
    for key, updated_at in definitions.values_list("pk", "updated_at"):
        since = raised.filter(object_id=str(key)).values_list("at", flat=True).first()
        definitions.filter(pk=key).update(review_since=since or updated_at)
    revisions = apps.get_model("lcm", "DefinitionRevision").objects.exclude(outcome="watching")
    decided = changes.filter(event="revision_outcome").order_by("at")
    for key, said, at in decided.values_list("object_id", "after", "at"):
        of_this = revisions.filter(definition_id=key, number=said["revision"], outcome=said["outcome"])
        of_this.update(outcome_at=at)
    revisions.filter(outcome_at=None).update(outcome_at=F("created_at"))


class Migration(migrations.Migration):
    dependencies = [("lcm", "0008_definitions_to_review")]

    operations = [
        migrations.AddField(
            model_name="labletdefinition",
            name="review_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="definitionrevision",
            name="outcome_at",
            field=models.DateTimeField(blank=True, help_text="When its outcome was decided.", null=True),
        ),
        migrations.RemoveIndex(model_name="labletdefinition", name="definition_to_review"),
        migrations.AddIndex(
            model_name="labletdefinition",
            index=models.Index(
                condition=Q(needs_review=True), fields=["review_since"], name="definition_to_review"
            ),
        ),
        migrations.RunPython(tell_since_when, migrations.RunPython.noop),
    ]
