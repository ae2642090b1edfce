"""What the last cycle said goes beside reservations, and rows that are written by the thousand refer without a check.

What was said before is not taken along: the next cycle says it once more.
"""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lcm', '0007_fewer_indexes_of_what_is_written_much'),
        ('scheduling', '0007_room_for_updates'),
    ]

    operations = [
        migrations.CreateModel(
            name='LastVerdict',
            fields=[
                ('reservation', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='last_verdict', serialize=False, to='scheduling.reservation')),
                ('summary', models.CharField(max_length=60)),
            ],
        ),
        migrations.RemoveIndex(
            model_name='reservation',
            name='reservation_expiry',
        ),
        migrations.RemoveField(
            model_name='reservation',
            name='verdict',
        ),
        migrations.AddField(
            model_name='explanation',
            name='used_at',
            field=models.DateTimeField(default=django.utils.timezone.now, help_text='When a cycle last gave it.'),
        ),
        migrations.AlterField(
            model_name='decision',
            name='pool',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='scheduling.pool'),
        ),
        migrations.AlterField(
            model_name='decision',
            name='reservation',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='scheduling.reservation'),
        ),
        migrations.AlterField(
            model_name='decision',
            name='slot',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='scheduling.slot'),
        ),
        migrations.AlterField(
            model_name='decision',
            name='why',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='decisions', to='scheduling.explanation'),
        ),
        migrations.AlterField(
            model_name='reservation',
            name='slot',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reservations', to='scheduling.slot'),
        ),
        migrations.AddIndex(
            model_name='reservation',
            index=models.Index(condition=models.Q(('expires_at__isnull', False), ('phase__in', ('PENDING', 'READY'))), fields=['expires_at'], name='reservation_expiry'),
        ),
    ]
