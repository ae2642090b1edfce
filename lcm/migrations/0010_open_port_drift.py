from django.db import migrations, models

FINAL = ("TERMINATED", "CANCELLED", "EXPIRED", "FAILED")


def fill_flags(apps, schema_editor):
    """Until now the one flag told whether the newest observation differed; the change log tells the rest."""
    sessions = apps.get_model("lcm", "LabletSession").objects
    changes = apps.get_model("lcm", "ChangeLog").objects
    sessions.filter(port_drift_detected=True).exclude(status__in=FINAL).update(port_drift_open=True)
    cleared = changes.filter(object_type="labletsession", event="port_drift_cleared").order_by()
    ids = sorted(set(cleared.values_list("object_id", flat=True)))
    for start in range(0, len(ids), 500):
        sessions.filter(pk__in=ids[start : start + 500]).update(port_drift_detected=True)


class Migration(migrations.Migration):
    dependencies = [("lcm", "0009_since_when_reviews_and_outcomes")]

    operations = [
        migrations.AddField(
            model_name="labletsession",
            name="port_drift_open",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="The newest observation of the ports differs from the plan, and the session has not ended.",
            ),
        ),
        migrations.AlterField(
            model_name="labletsession",
            name="port_drift_detected",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="An observation showed ports that differ from the plan.",
            ),
        ),
        migrations.AddIndex(
            model_name="labletsession",
            index=models.Index(
                condition=models.Q(("port_drift_open", True)),
                fields=["created_at", "id"],
                name="session_drift_open",
            ),
        ),
        migrations.RunPython(fill_flags, migrations.RunPython.noop),
    ]
