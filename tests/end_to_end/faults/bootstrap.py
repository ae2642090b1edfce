"""Create the pool, the definitions and the tokens that a fault run or a soak needs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.control_plane import ROOT

POOL = "faults"
USER = "fault-run"

SCRIPT = """
import json
from datetime import timedelta
from django.contrib.auth.models import Group
from django.utils import timezone
from lcm.domain.actors import SYSTEM
from lcm.models import Domain, Membership, Project, TokenKind, User
from lcm.services.definitions import import_definition
from lcm.services.tokens import create_token
from scheduling.services.pools import create_pool
from tests.support.factories import LAB, PASSWORD

now = timezone.now()
ends = now + timedelta(days=1)
user = User.objects.create_user("fault-run", password=PASSWORD)
user.groups.add(Group.objects.get(name="Admin"))
project = Project.objects.create(domain=Domain.objects.create(name="faults"), name="faults")
Membership.objects.create(project=project, user=user)
create_pool(
    name="faults", actor=SYSTEM, min_slots=2, max_slots=4,
    cpu_cores=64, memory_gb=256, storage_gb=2000, max_leases=10,
    runtime_settings=dict(launch_seconds=0, boot_seconds=0, lab_boot_seconds=0.3),
)
active = dict(topology=LAB, status="active", pool="faults", actor=SYSTEM, now=now)
definition = import_definition(name="faults", **active)
arrival = import_definition(name="faults-arrival", awaits_arrival=True, **active)
_, person = create_token(
    name="fault-run", kind=TokenKind.PERSON, user=user, expires_at=ends, actor=SYSTEM, now=now
)
_, controller = create_token(
    name="fault-run-controller", kind=TokenKind.CONTROLLER, scopes=["pool:faults"], expires_at=ends,
    actor=SYSTEM, now=now,
)
print("READ " + json.dumps(dict(
    person=person, controller=controller, password=PASSWORD, project=str(project.pk),
    definition=str(definition.pk), arrival=str(arrival.pk),
)))
"""


@dataclass(frozen=True)
class Known:
    """Tokens and ids of the objects that the script created."""

    person: str
    controller: str
    project: str
    definition: str
    arrival: str
    password: str


def bootstrap(env: Mapping[str, str]) -> Known:
    """Run the script in `manage.py shell` on the database of `env`."""
    result = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", SCRIPT],
        cwd=ROOT,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=120,
    )
    line = next((line for line in result.stdout.splitlines() if line.startswith("READ ")), None)
    assert line, result.stdout + result.stderr
    return Known(**json.loads(line.removeprefix("READ ")))
