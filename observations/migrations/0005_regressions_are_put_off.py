from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('observations', '0004_samples_by_a_setting'),
    ]

    operations = [
        migrations.AddField(
            model_name='definitionassessment',
            name='regression_aside',
            field=models.BooleanField(default=False, help_text='That its revision regressed was known when it was put off.'),
        ),
    ]
