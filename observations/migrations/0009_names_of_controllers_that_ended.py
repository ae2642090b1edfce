"""The name of a controller stays with its token when the controller ends."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('observations', '0008_controller_clocks')]

    operations = [
        migrations.AlterField(model_name='presence', name='seen_at', field=models.DateTimeField(null=True)),
    ]
