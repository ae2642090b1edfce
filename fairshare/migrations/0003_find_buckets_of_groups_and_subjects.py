"""Buckets of domains and projects, and those of one subject, are found without those of all people."""


from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('fairshare', '0002_close_allocations_by_kernel'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='usagebucket',
            index=models.Index(condition=models.Q(('level', 'domain'), ('level', 'project'), _connector='OR'), fields=['day'], name='bucket_of_groups'),
        ),
        migrations.AddIndex(
            model_name='usagebucket',
            index=models.Index(fields=['subject_id', 'day'], name='bucket_of_subject'),
        ),
    ]
