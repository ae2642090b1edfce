"""Write past sessions into the database of a running LCM: `python -m tests.support.observation_seed CALL …`.

A session is included in the review only after ten minutes, too long for a browser test. Its history is
written through the services, like that of the demo.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")


def observed(name: str, count: str, cpu: str, memory: str, storage: str) -> None:
    """Create observed sessions, an hour apart, that used these shares of the lab's resources."""
    from random import Random

    from django.utils import timezone

    from lcm.demo.past_sessions import end_sessions, observe, past_sessions
    from lcm.models import LabletDefinition, Project

    definition = LabletDefinition.objects.select_related("current_revision").get(name=name)
    project = Project.objects.order_by("name").first()
    assert project is not None
    people = {project: list(project.members.exclude(username="admin").order_by("username"))}
    now = timezone.now()
    endings = [now - timedelta(minutes=int(count) - index) for index in range(int(count))]
    sessions = past_sessions(definition, people, endings, Random(1))
    for session in sessions:
        observe(session, (float(cpu), float(memory), float(storage)), at=session.ends_at, now=now)
        print(session.pk)
    end_sessions(sessions)


def running(name: str) -> None:
    """Create a running session on a worker, with its ports."""
    from django.utils import timezone

    from lcm.demo.pools import place_session
    from lcm.domain.actors import SYSTEM
    from lcm.domain.lifecycle import SessionStatus
    from lcm.models import LabletDefinition, Project
    from lcm.services.session_transitions import transition_session
    from lcm.services.sessions import create_session

    definition = LabletDefinition.objects.select_related("current_revision").get(name=name)
    project = Project.objects.order_by("name").first()
    assert project is not None
    now = timezone.now()
    session = create_session(
        definition=definition,
        owner=project.members.exclude(username="admin").order_by("username")[0],
        project=project,
        starts_at=now,
        ends_at=now + timedelta(hours=1),
        actor=SYSTEM,
        now=now,
    )
    # If it is not placed here, a tick has placed it at the same time.
    place_session(session, now=now)
    session.refresh_from_db()
    assert session.status == SessionStatus.SCHEDULED, session.status
    for step in (SessionStatus.INSTANTIATING, SessionStatus.READY, SessionStatus.RUNNING):
        transition_session(session=session, to=step, actor=SYSTEM, now=now)
    ports = session.port_allocations.order_by("port").values_list("name", "port")
    print(session.pk, *(f"{port_name}={port}" for port_name, port in ports))


if __name__ == "__main__":
    import django

    django.setup()
    {"observed": observed, "running": running}[sys.argv[1]](*sys.argv[2:])
