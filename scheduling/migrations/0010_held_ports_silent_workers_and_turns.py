"""Ports are held until a moment, workers that do not answer are counted, and who is booked ahead has a turn.

Turns of those that wait already are told with the usual lead; a pool with another tells its own when its scheduler is saved.
"""

from datetime import timedelta

from django.db import migrations, models
from django.db.models import DateTimeField, ExpressionWrapper, F, OuterRef, Subquery

LEAD = timedelta(minutes=15)


def tell_turns(apps, schema_editor):
    sessions = apps.get_model('lcm', 'LabletSession').objects.filter(pk=OuterRef('session_id'))
    turn = ExpressionWrapper(F('starts_at') - LEAD, output_field=DateTimeField())
    reservations = apps.get_model('scheduling', 'Reservation').objects.filter(
        phase='PENDING', session__starts_at__gt=F('created_at') + LEAD
    )
    reservations.update(turn_at=Subquery(sessions.annotate(turn=turn).values('turn')))


class Migration(migrations.Migration):

    dependencies = [
        ('lcm', '0008_definitions_to_review'),
        ('scheduling', '0009_since_when_pools_launch_nothing'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='reservation',
            name='reservation_queue',
        ),
        migrations.AddField(
            model_name='portallocation',
            name='held_until',
            field=models.DateTimeField(blank=True, help_text='Only who looks after this moment may find it free.', null=True),
        ),
        migrations.AddField(
            model_name='reservation',
            name='turn_at',
            field=models.DateTimeField(blank=True, help_text='When its turn comes, if it was booked ahead: it waits from then on.', null=True),
        ),
        migrations.AddField(
            model_name='slot',
            name='failed_probes',
            field=models.PositiveSmallIntegerField(default=0, help_text='How often in a row it did not.'),
        ),
        migrations.AddField(
            model_name='slot',
            name='failed_together',
            field=models.BooleanField(default=False, help_text='None of the others that were asked answered either.'),
        ),
        migrations.AddField(
            model_name='slot',
            name='unanswered_since',
            field=models.DateTimeField(blank=True, help_text='Since when its worker, not heard of, does not answer us either.', null=True),
        ),
        migrations.AddIndex(
            model_name='reservation',
            index=models.Index(condition=models.Q(('phase', 'PENDING')), fields=['pool', 'priority', 'created_at', 'turn_at'], name='reservation_queue'),
        ),
        migrations.RunPython(tell_turns, migrations.RunPython.noop),
    ]
