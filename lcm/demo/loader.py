"""The demo fleet: definitions from realistic topologies, and sessions in every status."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from random import Random

from django.db import transaction
from django.utils import timezone

from lcm.demo.activity import request_session
from lcm.demo.names import DEFINITIONS, POOLS, SPOT_POOL, TOPOLOGIES, VERSION
from lcm.demo.notifications import make_notifications
from lcm.demo.past_sessions import create_observed_sessions, make_drift
from lcm.demo.people import make_organisation, make_people
from lcm.demo.pools import make_pools, place_session
from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import FINAL
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import DefinitionStatus, LabletDefinition, LabletSession, Priority, Project
from lcm.services.definitions import import_definition, read_topology
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import create_session
from scheduling.coordination.coordinator import Clock, coordinator

# Number of sessions by history. Most sessions of a fleet have terminated normally.
SESSION_HISTORIES: list[tuple[int, list[S]]] = [
    (38, [S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING, S.COLLECTING, S.STOPPING, S.TERMINATED]),
    (12, [S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING]),
    (9, []),
    (3, [S.SCHEDULED]),
    (3, [S.SCHEDULED, S.INSTANTIATING]),
    (2, [S.SCHEDULED, S.INSTANTIATING, S.READY]),
    (2, [S.CANCELLED]),
    (1, [S.EXPIRED]),
    (1, [S.SCHEDULED, S.INSTANTIATING, S.FAILED]),
    (1, [S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING, S.COLLECTING]),
]
REASONS = {
    S.CANCELLED: "The course was moved to another day",
    S.FAILED: "The lab did not converge within 15 minutes",
}


WAITING_AT_FIRST = 8
# Age of user accounts: older than the definitions and workers of the demo.
ORGANISATION_CREATED_AGO = timedelta(days=60)
# Definitions of the live fleet that are over-provisioned or under-provisioned, by factor.
WRONG_REQUIREMENTS = {
    "ccna-vlan-trunking": Decimal("2.5"),
    "ipv6-transition": Decimal(2),
    "ccnp-bgp-policy": Decimal("0.6"),
    "sdwan-edge-lab": Decimal("0.7"),
}


def is_empty() -> bool:
    return not LabletDefinition.objects.exists() and not Project.objects.exists()


@transaction.atomic
def load_demo(*, now: datetime, seed: int = 7, live: bool = False) -> None:
    """Fill an empty database. With `live`, no session is in progress yet."""
    rng = Random(seed)  # noqa: S311  (a repeatable demo, not a secret)
    make_people(at=now - ORGANISATION_CREATED_AGO)
    projects = make_organisation(at=now - ORGANISATION_CREATED_AGO)
    make_pools(now=now, live=live)
    definitions = make_definitions(now=now, live=live)
    create_observed_sessions(definitions=definitions, projects=projects, rng=rng, now=now)
    for _ in range(WAITING_AT_FIRST if live else 0):
        request_session(rng, now=now)
    for steps in (steps for count, steps in SESSION_HISTORIES for _ in range(count)):
        if live and not _has_ended(steps):
            continue
        _create_session(steps, definitions=definitions, projects=projects, rng=rng, now=now)
    make_drift(now=now)
    make_notifications(now=now)


def run_observers(clock: Clock = timezone.now) -> None:
    """Run each observer once, in order. beat starts them together and sums usage an hour later."""
    for name in coordinator.observers:
        coordinator.process_observer(name, clock)


def make_definitions(*, now: datetime, live: bool) -> list[LabletDefinition]:
    return [
        import_definition(
            topology=_topology(name),
            requirements=_wrong_requirements(name) if live else None,
            name=name,
            version=VERSION,
            status=DefinitionStatus.ACTIVE,
            pool=POOLS[index % len(POOLS)],
            # Non-preemptible work does not run on spot workers.
            preemptible=POOLS[index % len(POOLS)] == SPOT_POOL or index % 3 == 0,
            actor=SYSTEM,
            now=now - timedelta(days=30 - index),
        )
        for index, name in enumerate(DEFINITIONS)
    ]


def _wrong_requirements(name: str) -> dict[str, Decimal] | None:
    """Return wrong requirements for the review to correct."""
    if name not in WRONG_REQUIREMENTS:
        return None
    needed = read_topology(text=_topology(name)).requirements
    return {
        resource.name: round(amount * WRONG_REQUIREMENTS[name], 1)
        for resource, amount in needed
        if resource.required
    }


def _topology(name: str) -> str:
    return (TOPOLOGIES / f"{name}.yaml").read_text()


def _has_ended(steps: list[S]) -> bool:
    return bool(steps) and steps[-1] in FINAL


def _create_session(
    steps: list[S],
    *,
    definitions: list[LabletDefinition],
    projects: list[Project],
    rng: Random,
    now: datetime,
) -> LabletSession:
    """Create one session with its history. An active session reaches its status about now."""
    definition, project = rng.choice(definitions), rng.choice(projects)
    has_ended = _has_ended(steps)
    earliest = timedelta(hours=6) if has_ended else timedelta(minutes=20)
    at = now - earliest - timedelta(minutes=rng.randint(0, 7 * 24 * 60 if has_ended else 70))
    session = create_session(
        definition=definition,
        owner=rng.choice(list(project.members.exclude(username="admin"))),
        project=project,
        starts_at=at,
        ends_at=at + timedelta(hours=rng.choice((2, 3, 4))),
        priority=rng.choice((Priority.NORMAL,) * 4 + (Priority.HIGH, Priority.LOW)),
        actor=SYSTEM,
        now=at,
    )
    if S.SCHEDULED in steps and not place_session(session, now=at + timedelta(seconds=20)):
        return session
    for to in steps:
        if to == S.SCHEDULED:
            continue
        at += timedelta(seconds=rng.randint(5, 300 if to != S.COLLECTING else 9000))
        transition_session(session=session, to=to, actor=SYSTEM, now=min(at, now), reason=REASONS.get(to, ""))
    return session
