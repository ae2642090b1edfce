from django.db import migrations, models
from django.db.models import F, Q


def look_at_all(apps, schema_editor):
    """What was assessed before is due at once: the next sweep says what it rests on and when it changes."""
    assessments = apps.get_model("observations", "DefinitionAssessment").objects
    assessments.filter(last_observed_at__isnull=False).update(due_at=F("last_observed_at"))


class Migration(migrations.Migration):

    dependencies = [
        ("observations", "0005_regressions_are_put_off"),
    ]

    operations = [
        migrations.AddField(
            model_name='sessionobservation',
            name='peak_resources',
            field=models.JSONField(help_text='The observation with the most memory, whole, where it is not the newest.', null=True),
        ),
        migrations.AddIndex(
            model_name='sessionobservation',
            index=models.Index(condition=Q(left_out='excluded'), fields=['definition', 'observed_at'], name='excluded_newest'),
        ),
        migrations.AddField(
            model_name='definitionassessment',
            name='bases',
            field=models.JSONField(default=dict, help_text='Resource → used or allocated.'),
        ),
        migrations.AddField(
            model_name='definitionassessment',
            name='due_at',
            field=models.DateTimeField(blank=True, help_text='When time alone changes what it says.', null=True),
        ),
        migrations.RemoveIndex(
            model_name='definitionassessment',
            name='assessment_snoozed',
        ),
        migrations.AddIndex(
            model_name='definitionassessment',
            index=models.Index(condition=Q(due_at__isnull=False), fields=['due_at'], name='assessment_due'),
        ),
        migrations.RunPython(look_at_all, migrations.RunPython.noop),
    ]
