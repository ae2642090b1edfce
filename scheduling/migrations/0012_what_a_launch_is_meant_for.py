"""A launch says what it is meant for: what cannot be interrupted, or a worker of a list."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduling', '0011_installations_and_checked_labels'),
    ]

    operations = [
        migrations.AddField(
            model_name='launchattempt',
            name='on_demand_only',
            field=models.BooleanField(default=False, help_text='Meant for what cannot be interrupted, so nothing spot is asked for.'),
        ),
        migrations.AddField(
            model_name='launchattempt',
            name='worker',
            field=models.CharField(blank=True, max_length=100, help_text='The worker that is meant for it, where workers exist already.'),
        ),
    ]
