from django.db import migrations, models

import lcm.models.definitions
import scheduling.models.installation


class Migration(migrations.Migration):
    dependencies = [
        ("lcm", "0003_definition_slot_labels"),
        ("scheduling", "0010_held_ports_silent_workers_and_turns"),
    ]

    operations = [
        migrations.CreateModel(
            name="Installation",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("key", models.CharField(default=scheduling.models.installation.new_key, max_length=32)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="installation_once")
                ],
            },
        ),
        migrations.AlterField(
            model_name="slot",
            name="labels",
            field=models.JSONField(blank=True, default=dict, validators=[lcm.models.definitions.label_map]),
        ),
    ]
