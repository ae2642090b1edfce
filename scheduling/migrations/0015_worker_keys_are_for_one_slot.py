"""The keys that workers got for their boot tokens were as strong as a controller of their pool."""

from django.db import migrations


def limit_to_slot(apps, schema_editor):
    """Add the slot to the scopes. A key that replaced one by rotation has its name, but no launch attempt."""
    attempts = apps.get_model('scheduling', 'LaunchAttempt').objects.filter(api_token__isnull=False)
    slots = dict(attempts.values_list('api_token__name', 'slot_id'))
    tokens = apps.get_model('lcm', 'ApiToken').objects
    for token in tokens.filter(kind='controller', revoked_at=None):
        scope = f'slot:{slots.get(token.name)}'
        if token.name in slots and scope not in token.scopes:
            token.scopes = [*token.scopes, scope]
            token.save(update_fields=['scopes'])


class Migration(migrations.Migration):

    dependencies = [
        ('lcm', '0009_since_when_reviews_and_outcomes'),
        ('scheduling', '0014_find_slow_and_failed_runs'),
    ]

    operations = [migrations.RunPython(limit_to_slot, migrations.RunPython.noop)]
