"""A pool remembers which of its listed workers did not answer."""


from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduling', '0012_what_a_launch_is_meant_for'),
    ]

    operations = [
        migrations.AddField(
            model_name='pool',
            name='failed_workers',
            field=models.JSONField(blank=True, default=dict, help_text='Listed worker → when it did not answer: others are tried first.'),
        ),
    ]
