"""Factories for test objects. Definitions, sessions and tokens are created through the services."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import factory
from django.contrib.auth.models import Group
from django.utils import timezone

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import (
    ApiToken,
    DefinitionStatus,
    Delivery,
    DeliveryState,
    Domain,
    EventRule,
    LabletDefinition,
    LabletSession,
    Membership,
    Project,
    TokenKind,
    User,
    Webhook,
)
from lcm.services.definitions import import_definition
from lcm.services.event_rules import create_rule
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import create_session
from lcm.services.tokens import create_token
from lcm.services.webhooks import create_webhook
from scheduling.models import Pool

PASSWORD = "correct horse battery"

# 4 cores, 3.5 GB of memory and 7 GB of storage, two ports.
LAB = """
lab: {title: Branch office, version: 0.3.0}
nodes:
  - {id: n0, label: r1, node_definition: iosv, cpus: 2, ram: 2048, boot_disk_size: 4,
     tags: ["serial:5041"], interfaces: [{id: i0, label: Gi0/0}, {id: i1, label: Gi0/1}]}
  - {id: n1, label: r2, node_definition: iosv, cpus: 1, ram: 1024, boot_disk_size: 2,
     interfaces: [{id: i0, label: Gi0/0}]}
  - {id: n2, label: host, node_definition: alpine, cpus: 1, ram: 512, boot_disk_size: 1,
     tags: ["pat:2022:22"], interfaces: [{id: i0, label: eth0}]}
links:
  - {id: l0, n1: n0, i1: i0, n2: n1, i2: i0}
  - {id: l1, n1: n0, i1: i1, n2: n2, i2: i0}
"""

S = SessionStatus
# The shortest path of transitions from PENDING to each status.
WAY_TO: dict[SessionStatus, tuple[SessionStatus, ...]] = {
    S.PENDING: (),
    S.SCHEDULED: (S.SCHEDULED,),
    S.INSTANTIATING: (S.SCHEDULED, S.INSTANTIATING),
    S.READY: (S.SCHEDULED, S.INSTANTIATING, S.READY),
    S.RUNNING: (S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING),
    S.COLLECTING: (S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING, S.COLLECTING),
    S.STOPPING: (S.SCHEDULED, S.INSTANTIATING, S.STOPPING),
    S.TERMINATED: (S.SCHEDULED, S.INSTANTIATING, S.STOPPING, S.TERMINATED),
    S.CANCELLED: (S.CANCELLED,),
    S.EXPIRED: (S.EXPIRED,),
    S.FAILED: (S.SCHEDULED, S.INSTANTIATING, S.FAILED),
}


@dataclass(frozen=True)
class TokenHolder:
    """An API token and its key."""

    token: ApiToken
    key: str


class UserFactory(factory.django.DjangoModelFactory[User]):
    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence("person-{}".format)
    email = factory.LazyAttribute(lambda user: f"{user.username}@example.org")
    password = factory.django.Password(PASSWORD)


class DomainFactory(factory.django.DjangoModelFactory[Domain]):
    class Meta:
        model = Domain

    name = factory.Sequence("domain-{}".format)


class ProjectFactory(factory.django.DjangoModelFactory[Project]):
    class Meta:
        model = Project

    domain = factory.SubFactory(DomainFactory)
    name = factory.Sequence("project-{}".format)


def make_person(username: str, role: Role = Role.NONE, **fields: Any) -> User:
    """Create a person with a role, and the group of the role if a flush has removed it."""
    person = UserFactory(username=username, **fields)
    if role:
        person.groups.add(Group.objects.get_or_create(name=role.label)[0])
    return person


def make_project(domain: str, name: str, *members: User) -> Project:
    domain_row, _ = Domain.objects.get_or_create(name=domain)
    project = ProjectFactory(domain=domain_row, name=name)
    for member in members:
        Membership.objects.create(project=project, user=member)
    return project


_names = count()


HUGE = {"cpu_cores": 10_000, "memory_gb": 10_000, "storage_gb": 200_000, "gpu": 100, "max_leases": 100}


def ensure_pools() -> None:
    """Create the pools of test definitions and sessions; no scheduler runs in them."""
    Pool.objects.bulk_create(
        [Pool(name=name, system="cml", runtime="simulated", **HUGE) for name in ("cml-eu", "cml-us")],
        ignore_conflicts=True,
    )


def make_definition(
    name: str = "", *, status: str = DefinitionStatus.ACTIVE, **fields: Any
) -> LabletDefinition:
    ensure_pools()
    name = name or f"lab-{next(_names)}"
    fields = {"topology": LAB, "actor": SYSTEM, "now": timezone.now(), **fields}
    return import_definition(name=name, status=status, **fields)


def make_session(
    definition: LabletDefinition,
    project: Project,
    owner: User,
    *,
    status: SessionStatus = S.PENDING,
    now: datetime | None = None,
    **fields: Any,
) -> LabletSession:
    """Create a session of two hours from now and move it to the given status."""
    now = now or timezone.now()
    timeslot = {"starts_at": now, "ends_at": now + timedelta(hours=2)}
    arguments = {"definition": definition, "project": project, "owner": owner, **timeslot, **fields}
    session = create_session(**arguments, actor=SYSTEM, now=now)
    for step in WAY_TO[status]:
        transition_session(session=session, to=step, actor=SYSTEM, now=now)
    return session


def make_person_token(user: User, name: str = "", *, life: timedelta = timedelta(days=30)) -> TokenHolder:
    now = timezone.now()
    name = name or f"token-{next(_names)}"
    created = create_token(
        name=name, kind=TokenKind.PERSON, user=user, expires_at=now + life, actor=SYSTEM, now=now
    )
    return TokenHolder(*created)


def make_controller(name: str, *scopes: str) -> TokenHolder:
    now = timezone.now()
    ends = now + timedelta(days=30)
    created = create_token(
        name=name, kind=TokenKind.CONTROLLER, scopes=scopes, expires_at=ends, actor=SYSTEM, now=now
    )
    return TokenHolder(*created)


def make_delivery(now: datetime, **fields: Any) -> tuple[Webhook, EventRule, Delivery]:
    """Create a webhook with a rule and a failed delivery."""
    webhook, _ = create_webhook(name="chat", url="https://hooks.example.org/x", actor=SYSTEM, now=now)
    rule = create_rule(name="labs", event_types=["session.*"], webhook=webhook, actor=SYSTEM, now=now)
    given = {
        "event": None,
        "type": "session.ready",
        "payload": '{"id": "1"}',
        "state": DeliveryState.FAILED,
        **fields,
    }
    delivery = Delivery.objects.create(webhook=webhook, rule=rule, retry_until=now, created_at=now, **given)
    return webhook, rule, delivery
