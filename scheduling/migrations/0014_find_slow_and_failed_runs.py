"""Ticks and runs are sorted by how long they took, and failed runs counted, without reading all of them."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduling', '0013_workers_that_failed'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='observerrun',
            index=models.Index(fields=['duration_ms', 'id'], name='run_slowest'),
        ),
        migrations.AddIndex(
            model_name='observerrun',
            index=models.Index(fields=['failure_count', 'id'], name='run_most_failed'),
        ),
        migrations.AddIndex(
            model_name='observerrun',
            index=models.Index(condition=models.Q(models.Q(('error', ''), _negated=True), ('failure_count__gt', 0), _connector='OR'), fields=['started_at'], name='run_failed'),
        ),
        migrations.AddIndex(
            model_name='tickrun',
            index=models.Index(fields=['duration_ms', 'id'], name='tick_slowest'),
        ),
    ]
