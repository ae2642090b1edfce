"""The change log and the feed lose indexes that others cover or that hold nothing but null."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lcm', '0006_jobs'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='changelog',
            name='change_by_user',
        ),
        migrations.RemoveIndex(
            model_name='feedentry',
            name='feed_by_age',
        ),
        migrations.AlterField(
            model_name='changelog',
            name='user',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='feedentry',
            name='revision',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddIndex(
            model_name='changelog',
            index=models.Index(condition=models.Q(('user__isnull', False)), fields=['user', 'at'], name='change_by_user'),
        ),
        migrations.AddConstraint(
            model_name='feedentry',
            constraint=models.UniqueConstraint(condition=models.Q(('revision__isnull', False)), fields=('revision',), name='feed_revision_once'),
        ),
    ]
