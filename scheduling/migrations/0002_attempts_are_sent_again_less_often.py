import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduling", "0001_capacity"),
    ]

    operations = [
        migrations.AddField(
            model_name="launchattempt",
            name="due_at",
            field=models.DateTimeField(
                default=django.utils.timezone.now,
                help_text="When its task is sent again, should it still be open.",
            ),
        ),
        migrations.AddField(
            model_name="launchattempt",
            name="redrives",
            field=models.PositiveSmallIntegerField(
                default=0, help_text="How often its task was sent again."
            ),
        ),
    ]
