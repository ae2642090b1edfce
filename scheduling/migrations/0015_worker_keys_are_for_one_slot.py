"""The keys that workers got for their boot tokens were as strong as a controller of their pool."""

from django.db import migrations


def limit_to_slot(apps, schema_editor):
    attempts = apps.get_model('scheduling', 'LaunchAttempt').objects
    for attempt in attempts.filter(api_token__revoked_at=None, api_token__isnull=False).select_related('api_token'):
        token = attempt.api_token
        scope = f'slot:{attempt.slot_id}'
        if scope not in token.scopes:
            token.scopes = [*token.scopes, scope]
            token.save(update_fields=['scopes'])


class Migration(migrations.Migration):

    dependencies = [
        ('lcm', '0009_since_when_reviews_and_outcomes'),
        ('scheduling', '0014_find_slow_and_failed_runs'),
    ]

    operations = [migrations.RunPython(limit_to_slot, migrations.RunPython.noop)]
