"""Allocations are closed by their kernels, which another index finds."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('fairshare', '0001_usage_and_shares'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='allocation',
            name='allocation_held',
        ),
    ]
