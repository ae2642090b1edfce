from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("observations", "0006_peaks_and_dues")]

    operations = [
        migrations.AddField(
            model_name="presence",
            name="clock_skew",
            field=models.DecimalField(decimal_places=3, max_digits=12, null=True),
        ),
        migrations.AlterField(
            model_name="presence",
            name="address",
            field=models.CharField(blank=True, max_length=200),
        ),
    ]
