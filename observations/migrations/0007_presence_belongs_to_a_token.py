"""The name of a controller belongs to the token it was reported with; a controller may have no metrics."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lcm', '0009_since_when_reviews_and_outcomes'),
        ('observations', '0006_peaks_and_dues'),
    ]

    operations = [
        migrations.AddField(
            model_name='presence',
            name='token',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='lcm.apitoken'),
        ),
        migrations.AlterField(
            model_name='presence',
            name='address',
            field=models.CharField(blank=True, max_length=200),
        ),
    ]
