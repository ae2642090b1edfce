"""Fill the database with sessions by bulk inserts."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from lcm.demo.loader import make_definitions
from lcm.demo.people import make_organisation, make_people
from lcm.demo.pools import make_pools
from lcm.domain.lifecycle import ACTIVE, SessionStatus
from lcm.models import LabletSession, Membership, Priority, User

USERS = 2_000
# Two of a hundred sessions are active, as on a fleet with a long history.
ENDED = [status for status in SessionStatus if status not in ACTIVE]


class Filler:
    """Adds sessions of the demo's definitions and projects, newest first."""

    def __init__(self, users: int = USERS) -> None:
        self.chance = random.Random(11)
        self.now = timezone.now()
        make_people(at=self.now)
        self.projects = [project.pk for project in make_organisation(at=self.now)]
        make_pools(now=self.now, live=False)
        definitions = make_definitions(now=self.now, live=False)
        self.definitions = [(each.pk, each.current_revision_id) for each in definitions]
        names = (f"student-{number:05}" for number in range(users))
        User.objects.bulk_create([User(username=name) for name in names], batch_size=2_000)
        self.owners = list(User.objects.filter(username__startswith="student-").values_list("pk", flat=True))
        Membership.objects.bulk_create(
            [
                Membership(project_id=self.chance.choice(self.projects), user_id=owner)
                for owner in self.owners
            ],
            batch_size=2_000,
        )
        self.made = 0

    def fill(self, total: int) -> None:
        with transaction.atomic():
            while self.made < total:
                count = min(20_000, total - self.made)
                rows = [self._row() for _ in range(count)]
                _insert(rows)
                self.made += count
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE" if connection.vendor == "postgresql" else "PRAGMA optimize=0x10002")

    def _row(self) -> LabletSession:
        chance = self.chance
        definition, revision = chance.choice(self.definitions)
        at: datetime = self.now - timedelta(seconds=chance.randint(0, 365 * 86_400))
        status = chance.choice(ACTIVE) if chance.random() < 0.02 else chance.choice(ENDED)
        return LabletSession(
            id=UUID(int=chance.getrandbits(128), version=4),
            definition_id=definition,
            revision_id=revision,
            owner_id=chance.choice(self.owners),
            project_id=chance.choice(self.projects),
            priority=chance.choice(Priority.values),
            starts_at=at,
            ends_at=at + timedelta(hours=2),
            status=status,
            status_since=at,
            pool=chance.choice(("cml-eu", "cml-us")),
            created_at=at,
        )


def _insert(rows: list[LabletSession]) -> None:
    if connection.vendor != "postgresql":
        LabletSession.objects.bulk_create(rows, batch_size=2_000)
        return
    fields = list(LabletSession._meta.concrete_fields)
    columns = ", ".join(f'"{field.column}"' for field in fields)
    with connection.cursor() as cursor, cursor.copy(f"COPY lcm_labletsession ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row([getattr(row, field.attname) for field in fields])
