"""Query counts of the definition, session and slot pages with all of their panels."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from lcm.domain.actors import Actor
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import DefinitionRevision, LabletDefinition, LabletSession, Project, RevisionOutcome, User
from lcm.models.sessions import KernelStatus
from lcm.services.definitions import revise_definition
from lcm.web.panels import panels_of
from observations.models import DriftReview, NotCountedReason, SessionObservation
from observations.selectors.evidence import evidence_of, not_counted_sessions, outliers_of
from observations.services.drift_reviews import acknowledge_drift
from observations.services.requests import request_observation
from observations.services.review_snooze import snooze_review
from observations.services.session_exclusion import exclude_session
from scheduling.models import LaunchAttempt, PortAllocation, ReservationPart, Slot
from tests.support.capacity_setup import make_slot, pool_named, put_on, reserve
from tests.support.factories import make_session
from tests.support.observed_labs import make_past_session, on_slot, post, seen

LIMIT = 20
FEW, MANY = 2, 12
HTMX = {"HX-Request": "true"}
MINUTE = timedelta(minutes=1)
PLAN = {"r1_serial": 5041, "host_pat": 2022}
# Below the usage of every session.
TOO_LITTLE = "&".join(f"{name}=custom&{name}_custom=0.5" for name in ("cpu_cores", "memory_gb", "storage_gb"))


class QueryCountLab:
    """A definition without a pool: observed, revised, snoozed, with drift and sessions of all kinds."""

    def __init__(self, definition: LabletDefinition, project: Project, owner: User, now: datetime) -> None:
        LabletDefinition.objects.filter(pk=definition.pk).update(pool="", slot_labels={"site": "eu"})
        self.definition, self.project, self.owner, self.now = definition, project, owner, now
        self.made = 0
        for tenth in range(12):
            self.observed(cpu=f"2.{tenth:02}", memory=3000 + tenth, storage=6000 + tenth)
        self.running = make_session(definition, project, owner, status=SessionStatus.RUNNING, now=now)
        self.waiting = make_session(definition, project, owner, now=now)
        self.slot = on_slot(self.running, ports=PLAN)
        Slot.objects.filter(pk=self.slot.pk).update(max_leases=100)

    def observed(self, length: timedelta = timedelta(hours=1), **figures: Any) -> LabletSession:
        session = self._past_session(length=length)
        post(session, seen(self.now, **figures), self.now)
        return session

    def _past_session(self, **fields: Any) -> LabletSession:
        self.definition.refresh_from_db()
        return make_past_session(self.definition, self.project, self.owner, ended=self.now, **fields)

    def grow(self, count: int, actor: Actor) -> None:
        for number in range(self.made, self.made + count):
            self._add_not_counted(actor)
            self.observed(cpu="9.00", memory=30_000, storage=60_000)
            self.observed(cpu="0.10", memory=100, storage=100)
            self._revise(number, actor)
            self._drift(number)
            self._workers(number)
            self._on_the_slot(number)
        self.made += count
        self._decide(actor)

    def _add_not_counted(self, actor: Actor) -> None:
        """Add an excluded session of each kind, and one of another topology."""
        odd = self.observed(cpu="2.00", memory=3000, storage=6000)
        exclude_session(session=odd, reason="by hand", actor=actor, now=self.now)
        self.observed(length=5 * MINUTE)
        bare = {"observed_at": self.now.isoformat(), "observer": "lablet-controller", "errors": []}
        post(self._past_session(), bare, self.now)
        post(self._past_session(until=SessionStatus.RUNNING), seen(self.now), self.now)
        old = self.observed(cpu="2.00", memory=3000, storage=6000)
        SessionObservation.objects.filter(session=old).update(epoch="0" * 64)

    def _revise(self, number: int, actor: Actor) -> None:
        self.definition.refresh_from_db()
        revision = self.definition.current_revision
        assert revision is not None
        amounts = {"cpu_cores": Decimal(5 + number), "memory_gb": Decimal(4), "storage_gb": Decimal(8)}
        revise_definition(
            definition=self.definition,
            requirements={**amounts, "gpu": Decimal(0)},
            based_on=revision.number,
            reason="more",
            actor=actor,
            now=self.now,
        )

    def _drift(self, number: int) -> None:
        """Add a port in each observation of the running session."""
        ports = {"r1_serial": 5049, **{f"x{each}_serial": 6000 + each for each in range(number + 1)}}
        at = self.now + timedelta(seconds=number)
        post(self.running, seen(at, ports=ports), at)

    def _workers(self, number: int) -> None:
        slot = make_slot(pool_named(f"pool-{number}"), labels={"site": "eu"}, is_spot=number % 2 == 0)
        put_on(slot, reserve(slot.pool, self.now), self.now)
        PortAllocation.objects.create(slot=slot, port=slot.pool.first_port, name="x_serial", leaked=True)

    def _on_the_slot(self, number: int) -> None:
        """Add a session, a part of a spread session and a launch."""
        other = make_session(self.definition, self.project, self.owner, now=self.now)
        put_on(self.slot, other.reservations.get(), self.now, 3000 + number)
        self.running.refresh_from_db()
        kernels = list(other.kernels.values_list("pk", flat=True))
        other.kernels.update(status=KernelStatus.RUNNING)
        ReservationPart.objects.create(
            reservation=reserve(self.slot.pool, self.now), slot=self.slot, cpu_cores=1, memory_gb=1,
            storage_gb=1, gpu=0, kernels=[str(key) for key in kernels],
        )  # fmt: skip
        LaunchAttempt.objects.create(
            slot=self.slot, token=f"t{number}", requested_at=self.now, outcome="launched"
        )

    def _decide(self, actor: Actor) -> None:
        """Regress a revision, snooze a review, acknowledge drift and request an observation."""
        self.definition.refresh_from_db()
        mine = DefinitionRevision.objects.filter(pk=self.definition.current_revision_id)
        mine.update(outcome=RevisionOutcome.REGRESSED, outcome_at=self.now)
        self.definition.refresh_from_db()
        until = self.now + timedelta(days=9)
        snooze_review(definition=self.definition, until=until, reason="exams", actor=actor, now=self.now)
        review = DriftReview.objects.filter(definition=self.definition, kind="extra").order_by("name")[0]
        acknowledge_drift(review=review, reason="known", until=until, actor=actor, now=self.now)
        self.running.refresh_from_db()
        request_observation(session=self.running, actor=actor, now=self.now + timedelta(hours=self.made))


@pytest.fixture
def lab(active_definition, project, operator, now) -> QueryCountLab:
    return QueryCountLab(active_definition, project, operator, now)


def addresses(lab: QueryCountLab) -> list[str]:
    """Return the URLs of the pages and of all registered panels."""
    lab.running.refresh_from_db()
    slot = Slot.objects.get(pk=lab.slot.pk)
    shown = [("definition", lab.definition), ("slot", slot), ("session", lab.running)]
    shown += [("session-first", lab.waiting), ("session-wide", lab.running), ("session", lab.waiting)]
    found = [reverse(f"{page.split('-')[0]}_detail", args=[each.pk]) for page, each in shown]
    found += [
        reverse(panel.url_name, args=[each.pk])
        for page, each in shown
        for panel in panels_of(page, each, Role.ADMIN)
    ]
    review, preview, revisions = (
        reverse(name, args=[lab.definition.pk])
        for name in ("definition_review", "definition_preview", "definition_revisions")
    )
    return [*dict.fromkeys(found), f"{review}?{TOO_LITTLE}", f"{preview}?{TOO_LITTLE}", revisions]


def costs(client, lab: QueryCountLab) -> dict[tuple[str, str], int]:
    """Return the number of queries of each URL, as a page and as an htmx panel."""
    found = {}
    for address in addresses(lab):
        for kind, headers in (("page", {}), ("panel", HTMX)):
            with CaptureQueriesContext(connection) as captured:
                assert client.get(address, headers=headers).status_code == 200, address
            found[(address, kind)] = len(captured)
    return found


def test_the_lab_of_the_query_tests_has_all_kinds_of_rows(lab, as_admin, now):
    lab.grow(FEW, as_admin)
    rows = not_counted_sessions(lab.definition)
    assert {row.not_counted_reason for row in rows} == {"", *NotCountedReason.values}
    evidence = evidence_of(lab.definition, now=now)
    assert {each.resource for each in outliers_of(evidence)} == set(evidence.views)
    assert evidence.assessment.snoozed_until is not None
    assert evidence.assessment.flags
    assert {each.state for each in DriftReview.objects.all()} == {"open", "acknowledged"}


def test_the_first_page_of_an_unobserved_definition_stays_within_the_limit(definition, client, viewer):
    client.force_login(viewer)
    with CaptureQueriesContext(connection) as captured:
        client.get(reverse("definition_review", args=[definition.pk]))
    assert len(captured) <= LIMIT


@pytest.mark.parametrize("role", ["viewer", "admin"])
def test_pages_need_at_most_twenty_queries(role, lab, as_admin, client, request):
    client.force_login(request.getfixturevalue(role))
    lab.grow(FEW, as_admin)
    few = costs(client, lab)
    assert {page: count for page, count in few.items() if count > LIMIT} == {}
    lab.grow(MANY, as_admin)
    many = costs(client, lab)
    assert {page: (few[page], count) for page, count in many.items() if count > few[page]} == {}
