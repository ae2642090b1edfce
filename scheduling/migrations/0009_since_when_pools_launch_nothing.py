"""Pools say since when they are stopped or wait before they launch again."""

from typing import Any

from django.db import migrations, models
from django.db.models import Q


def tell_since_when(apps: Any, schema_editor: Any) -> None:
    """As the change log and the attempts have it; a stop they do not know of, since the last edit."""
    pools = apps.get_model("scheduling", "Pool").objects
    stops = apps.get_model("lcm", "ChangeLog").objects.filter(object_type="pool", event="pool_stopped")
    for pool in pools.exclude(stopped_reason=""):
        since = stops.filter(object_id=str(pool.pk)).order_by("-at").values_list("at", flat=True).first()
        pools.filter(pk=pool.pk).update(stopped_at=since or pool.updated_at)
    in_vain = Q(outcome__in=("failed", "lost")) | Q(outcome="refused", category__gt="")
    attempts = apps.get_model("scheduling", "LaunchAttempt").objects.filter(in_vain, finished_at__isnull=False)
    for pool in pools.exclude(backoff_until=None):
        last = attempts.filter(slot__pool=pool).order_by("-finished_at").values_list("finished_at", flat=True)
        pools.filter(pk=pool.pk).update(backoff_since=last.first())


class Migration(migrations.Migration):
    dependencies = [
        ("lcm", "0009_since_when_reviews_and_outcomes"),
        ("scheduling", "0008_verdicts_beside_reservations"),
    ]

    operations = [
        migrations.AddField(
            model_name="pool", name="stopped_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="pool", name="backoff_since", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.RunPython(tell_since_when, migrations.RunPython.noop),
    ]
