"""The number of queries of a fair-share page does not depend on the amount of data."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fairshare.models import FairShare, UsageBucket, UsageCheck
from fairshare.models.levels import ROOT, Level
from fairshare.selectors.trees import SubjectKey
from fairshare.services.calculation import calculate_pool
from fairshare.services.policies import save_policy, set_weights
from lcm.domain.actors import SYSTEM
from lcm.models import Project, User
from tests.support.factories import make_person, make_project
from tests.support.fairshare_setup import FairShareStage

LIMIT = 12
FEW, MANY = 2, 6
HTMX = {"HX-Request": "true"}
FAIR, USAGE = "/fair-share/?pool=cml-eu", "/usage/?pool=cml-eu"
POLICY = "/fair-share/policy?pool=cml-eu"
WEIGHTS = ("/fair-share/weights/bar", "/fair-share/weights")
PREVIEW = {
    "half_life_days": "3",
    "lookback_days": "14",
    "normalisation": "capacity",
    "order": "classic",
    "default_weight": "2",
    "preview": "1",
}


class SeededOrganisation:
    """A pool with domains, projects and people that have weights, usage and waiting sessions."""

    def __init__(self, stage: FairShareStage) -> None:
        self.stage, self.pool, self.now = stage, stage.pool, stage.clock()
        self.domains = 0
        save_policy(pool=self.pool, actor=SYSTEM, reason="term", order="classic", resource_weights={"gpu": 9})
        UsageCheck.objects.create(
            checked_at=self.now,
            first_day=self.now.date(),
            last_day=self.now.date(),
            record_count=9,
            difference_count=2,
            differences=["academy: cpu_cores 1 in the bucket, 2 in the records", "soc: none"],
        )

    def grow(self, count: int) -> None:
        """Add `count` domains with `count` projects with `count` people each, all with usage."""
        for number in range(self.domains, self.domains + count):
            for each in range(count):
                people = [make_person(f"person-{number}-{each}-{n}") for n in range(count)]
                project = make_project(f"domain-{number}", f"project-{each}", *people)
                self._use(project, people)
                self.stage.projects["last"], self.stage.people["last"] = project, people[-1]
            self.stage.request("last", "last")
            self.stage.start("last", "last")
        self.domains += count
        calculate_pool(self.pool, now=self.now)

    def _use(self, project: Project, people: list[User]) -> None:
        keys = [SubjectKey(Level.USER, person.pk, project.pk) for person in people]
        keys.append(SubjectKey(Level.PROJECT, project.pk, project.domain_id))
        if not UsageBucket.objects.filter(subject_id=project.domain_id).exists():
            keys.append(SubjectKey(Level.DOMAIN, project.domain_id, ROOT))
        set_weights(pool=self.pool, weights=dict.fromkeys(keys[-2:], 2.0), actor=SYSTEM, reason="term")
        UsageBucket.objects.bulk_create(
            UsageBucket(
                day=self.now.date() - timedelta(days=age), pool=self.pool.name, level=key.level,
                subject_id=key.subject, parent_id=key.parent,
                cpu_cores=10**11 + rank, memory_gb=10**12, storage_gb=10**12, gpu=10**10,
            )
            for age in range(3)
            for rank, key in enumerate(keys)
        )  # fmt: skip

    @property
    def opened(self) -> str:
        project = self.stage.projects["last"]
        return f"{FAIR}&open={project.domain_id.hex},{project.pk.hex}"

    def entered(self) -> dict[str, str]:
        """Return new weights for a domain, a project and a person, as posted by the tree."""
        project, person = self.stage.projects["last"], self.stage.people["last"]
        keys: list[tuple[str, UUID, UUID]] = [
            ("domain", project.domain_id, ROOT),
            ("project", project.pk, project.domain_id),
            ("user", person.pk, project.pk),
        ]
        weights = {f"w:{level}:{subject}:{parent}": "7" for level, subject, parent in keys}
        return {"pool": self.pool.name, **weights}


@pytest.fixture
def organisation(stage: FairShareStage, time_machine) -> SeededOrganisation:
    time_machine.move_to(stage.clock(), tick=False)
    return SeededOrganisation(stage)


def requests_of(organisation: SeededOrganisation, role: str) -> list[tuple[str, dict[str, str]]]:
    """Return URLs of all pages and panels that a role can open, with the data to post."""
    trees = ["/fair-share/", FAIR, f"{FAIR}&open=", organisation.opened]
    trees += [f"{FAIR}&resource=gpu", f"{FAIR}&q=person", f"{FAIR}&q=domain", f"{FAIR}&q=unknown"]
    used = ["/usage/", USAGE, *(f"{USAGE}&level={level}&resource=memory_gb" for level in Level.values)]
    read = [*trees, *used, "/overview/usage"]
    found: list[tuple[str, dict[str, str]]] = [(address, {}) for address in read]
    if role == "admin":
        found += [(POLICY, {}), ("/fair-share/rebuild", {}), (POLICY, PREVIEW)]
        found += [(address, organisation.entered()) for address in WEIGHTS]
    return found


def query_counts(client, organisation: SeededOrganisation, role: str) -> dict[tuple[str, str], int]:
    """Return the number of queries of each response, as a page and as an htmx panel."""
    found = {}
    for address, data in requests_of(organisation, role):
        for kind, headers in (("page", {}), ("panel", HTMX)):
            with CaptureQueriesContext(connection) as captured:
                response = (
                    client.post(address, data, headers=headers)
                    if data
                    else client.get(address, headers=headers)
                )
                assert response.status_code == 200, address
            # The expanded project is a different one in a larger organisation.
            name = "opened" if address == organisation.opened else address
            found[(name + ("preview" if data else ""), kind)] = len(captured)
    return found


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_pages_use_at_most_twelve_queries_whatever_the_amount_of_data(role, organisation, client, request):
    client.force_login(request.getfixturevalue(role))
    organisation.grow(FEW)
    few = query_counts(client, organisation, role)
    assert {page: count for page, count in few.items() if count > LIMIT} == {}
    organisation.grow(MANY)
    many = query_counts(client, organisation, role)
    assert {page: (few[page], count) for page, count in many.items() if count > few[page]} == {}


def test_a_truncated_branch_uses_as_many_queries_as_a_small_one(organisation, client, admin, monkeypatch):
    client.force_login(admin)
    organisation.grow(FEW)
    small = query_counts(client, organisation, "viewer")
    monkeypatch.setattr("fairshare.selectors.shares.MAX_CHILDREN", 1)
    assert "rows not shown" in client.get(organisation.opened).content.decode()
    assert query_counts(client, organisation, "viewer") == small


def test_usage_that_is_not_counted_yet_uses_no_more_queries(organisation, client, viewer):
    client.force_login(viewer)
    organisation.grow(FEW)
    FairShare.objects.update(usage=0)
    assert "Usage is not counted yet." in client.get(FAIR).content.decode()
    found = query_counts(client, organisation, "viewer")
    assert {page: count for page, count in found.items() if count > LIMIT} == {}
