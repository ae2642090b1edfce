from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("observations", "0007_presence_belongs_to_a_token")]

    operations = [
        migrations.AddField(
            model_name="presence",
            name="clock_skew",
            field=models.DecimalField(decimal_places=3, max_digits=12, null=True),
        ),
    ]
