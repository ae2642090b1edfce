"""Objects for sessions and API tokens; run in `manage.py shell` of a control plane under test."""

BOOTSTRAP = """
import json, sys
from datetime import timedelta
from django.utils import timezone
from lcm.domain.actors import SYSTEM
from lcm.models import ApiToken, Domain, Membership, Project, TokenKind, User
from lcm.domain.roles import Role
from django.contrib.auth.models import Group
from lcm.services.definitions import import_definition
from lcm.services.tokens import create_token
from scheduling.services.pools import create_pool
from tests.support.factories import LAB, PASSWORD

now = timezone.now()
ends = now + timedelta(days=1)
boss = User.objects.create_user("boss", password=PASSWORD)
boss.groups.add(Group.objects.get(name="Admin"))
domain = Domain.objects.create(name="academy")
project = Project.objects.create(domain=domain, name="ccna")
Membership.objects.create(project=project, user=boss)
size = dict(cpu_cores=64, memory_gb=256, storage_gb=2000, max_leases=40)
fast = dict(launch_seconds=0, boot_seconds=0, lab_boot_seconds=0.3)
for name in ("cml-eu", "cml-us"):
    create_pool(name=name, actor=SYSTEM, min_slots=1, max_slots=2, runtime_settings=fast, **size)
# Where a session is alone on its worker, and what fails there fails for it alone.
create_pool(
    name="cml-alone", actor=SYSTEM, max_slots=50, idle_seconds=1, runtime_settings=fast,
    **size | {"max_leases": 1},
)
# Two workers, on neither of which the lab fits.
create_pool(
    name="cml-small", actor=SYSTEM, max_slots=2, runtime_settings=fast, **size | {"cpu_cores": 3},
)
apart = import_definition(
    topology=LAB, name="apart", status="active", pool="cml-small", placement="spread", actor=SYSTEM, now=now
)
definition = import_definition(
    topology=LAB, name="campus", status="active", pool="cml-eu", actor=SYSTEM, now=now
)
waiting = import_definition(
    topology=LAB, name="exam", status="active", pool="cml-eu", awaits_arrival=True, actor=SYSTEM, now=now
)
_, person = create_token(
    name="boss", kind=TokenKind.PERSON, user=boss, expires_at=ends, actor=SYSTEM, now=now
)
keys = {}
for pool in ("cml-eu", "cml-us", "cml-alone", "cml-small"):
    _, keys[pool] = create_token(
        name=pool, kind=TokenKind.CONTROLLER, scopes=[f"pool:{pool}"], expires_at=ends, actor=SYSTEM, now=now
    )
_, discovery = create_token(
    name="prometheus", kind=TokenKind.CONTROLLER, scopes=["prometheus:targets"], expires_at=ends,
    actor=SYSTEM, now=now,
)
print("READ " + json.dumps({
    "person": person, "controllers": keys, "discovery": discovery, "project": str(project.pk),
    "definition": str(definition.pk), "waiting": str(waiting.pk), "apart": str(apart.pk),
}))
"""
