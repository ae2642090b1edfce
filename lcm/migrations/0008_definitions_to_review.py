from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("lcm", "0007_fewer_indexes_of_what_is_written_much")]

    operations = [
        migrations.AddIndex(
            model_name="labletdefinition",
            index=models.Index(
                condition=Q(needs_review=True), fields=["updated_at"], name="definition_to_review"
            ),
        )
    ]
