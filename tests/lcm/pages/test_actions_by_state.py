"""Actions by state: in each state and for each role, offered actions work and the others are refused.

Each object is put into a state, each role reads its page, then everyone tries every action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import ChangeLog, Job
from lcm.models.jobs import JobState
from lcm.services.definitions import revise_definition
from observations.models import DefinitionAssessment, DriftReview
from observations.models.drift import ReviewState
from observations.services.session_exclusion import exclude_session
from scheduling.models import Pool, SlotState
from tests.support.capacity_setup import make_slot
from tests.support.observed_labs import make_past_session, post, seen

RANKS = ("viewer", "operator", "admin")


@dataclass(frozen=True)
class Action:
    """An action on one kind of object: lowest role, states and form values."""

    name: str
    role: str
    states: frozenset[str]
    form: Mapping[str, Any]

    def is_for(self, role: str, state: str) -> bool:
        return state in self.states and RANKS.index(role) >= RANKS.index(self.role)


def action(name: str, role: str, states: str, **form: Any) -> Action:
    return Action(name, role, frozenset(states.split()), {"reason": "A disk is changed", **form})


IN_FLIGHT = "LAUNCHING BOOTING BINDING"
SLOT = [
    action("slot_cordon", "operator", f"{IN_FLIGHT} READY READY+lease DRAINING DRAINING+idle"),
    action("slot_uncordon", "operator", "READY+cordoned"),
    action("slot_drain", "operator", "BOOTING BINDING READY READY+cordoned READY+lease"),
    action(
        "slot_labels",
        "operator",
        f"{IN_FLIGHT} READY READY+cordoned READY+lease DRAINING DRAINING+idle",
        **{"labels-0-key": "gpu", "labels-0-value": "a10"},
    ),
    action("slot_retry", "operator", "ERROR"),
    action("slot_terminate", "operator", f"{IN_FLIGHT} READY READY+cordoned DRAINING DRAINING+idle"),
    # A worker that was drained before it was ready cannot serve.
    action("slot_cancel_drain", "operator", "DRAINING+idle"),
]
SESSION = [
    action("session_cancel", "operator", "PENDING SCHEDULED INSTANTIATING READY RUNNING COLLECTING"),
    action("session_extend", "operator", "PENDING SCHEDULED INSTANTIATING READY RUNNING"),
]
WAITING = [action("session_pool", "operator", "PENDING", pool="cml-us")]
OBSERVED = [action("session_observe", "operator", "RUNNING")]
JOB = [action("job_retry", "operator", "failed")]
DRIFT = [
    action("drift_acknowledge", "operator", "open acknowledged"),
    action("drift_reopen", "operator", "acknowledged"),
]
REVIEW = [
    action("review_snooze", "admin", "flagged regressed"),
    action("review_dismiss", "admin", "flagged regressed"),
]
EVIDENCE = [
    action("session_exclude", "admin", "counts too_short"),
    action("session_include", "admin", "excluded"),
]
REVISION = [action("definition_revert", "admin", "older", based_on="2")]


@pytest.fixture
def people(viewer, operator, admin) -> dict[str, Client]:
    clients = {}
    for role, person in (("viewer", viewer), ("operator", operator), ("admin", admin)):
        clients[role] = Client()
        clients[role].force_login(person)
    return clients


def deviations(
    people: Mapping[str, Client],
    actions: list[Action],
    state: str,
    page: str,
    address_of: Callable[[str], str],
) -> list[str]:
    """Return the deviations from the table as text."""
    deviating = []
    for role, client in people.items():
        response = client.get(page)
        assert response.status_code == 200, page
        shown = response.content.decode()
        for each in actions:
            address = address_of(each.name)
            is_offered = each.is_for(role, state)
            if (f'="{address}"' in shown) != is_offered:
                deviating.append(f"{role} is {'not ' if is_offered else ''}offered {each.name} in {state}")
            status, succeeded = try_action(client, address, each.form)
            if succeeded != is_offered:
                deviating.append(
                    f"{each.name} by {role} in {state} {'failed' if is_offered else 'worked'}: {status}"
                )
            if not each.is_for(role, next(iter(each.states))) and status != 403:
                deviating.append(f"{each.name} by {role} gets {status}")
    return deviating


def try_action(client: Client, address: str, form: Mapping[str, Any]) -> tuple[int, bool]:
    """Return the response and whether anything changed, which the change log shows."""
    before = ChangeLog.objects.count()
    with transaction.atomic():
        response = client.post(address, form)
        succeeded = ChangeLog.objects.count() > before
        # Roll back, so that the next action finds the same state.
        transaction.set_rollback(True)
    return response.status_code, succeeded


def address_of_object(pk: Any, *more: Any) -> Callable[[str], str]:
    return lambda name: reverse(name, args=[pk, *more])


def with_time(actions: list[Action], name: str, moment: datetime) -> list[Action]:
    filled = {name: moment.strftime("%Y-%m-%dT%H:%M")}
    return [replace(each, form={**each.form, **filled}) for each in actions]


def until_next_week(actions: list[Action], now: datetime) -> list[Action]:
    return with_time(actions, "until", now + timedelta(days=7))


SLOT_STATES = [*SlotState.values, "READY+cordoned", "READY+lease", "DRAINING+idle", "ERROR+lease"]


@pytest.mark.parametrize("state", SLOT_STATES)
def test_a_slot_offers_its_actions_by_state(people, session, state, now):
    base, _, more = state.partition("+")
    pool = Pool.objects.get(name="cml-eu")
    fields = {"cordoned": more == "cordoned", "idle_since": now if more == "idle" else None}
    slot = make_slot(pool, 1, base, lease_count=int(more == "lease"), **fields)
    assert (
        deviations(people, SLOT, state, reverse("slot_detail", args=[slot.pk]), address_of_object(slot.pk))
        == []
    )


@pytest.mark.parametrize("state", [status.value for status in S])
def test_a_session_offers_its_actions_by_status(people, session_in, state):
    session = session_in(S(state))
    actions = with_time(SESSION, "ends_at", session.ends_at + timedelta(hours=1))
    address_of = address_of_object(session.pk)
    assert deviations(people, actions, state, reverse("session_detail", args=[session.pk]), address_of) == []
    assert (
        deviations(people, WAITING, state, reverse("session_wait_reasons", args=[session.pk]), address_of)
        == []
    )
    assert (
        deviations(people, OBSERVED, state, reverse("session_observation", args=[session.pk]), address_of)
        == []
    )


@pytest.mark.parametrize("state", JobState.values)
def test_a_job_offers_its_actions_by_state(people, state, now):
    finished = now if state in (JobState.DONE, JobState.FAILED) else None
    job = Job.objects.create(kind="bulk", title="Cancel", actor="otto", state=state, finished_at=finished)
    assert (
        deviations(people, JOB, state, reverse("job_detail", args=[job.pk]), address_of_object(job.pk)) == []
    )


@pytest.mark.parametrize("state", [*ReviewState.values, "conflict"])
def test_port_drift_offers_its_actions_by_state(people, active_definition, state, now):
    until = {"acknowledged_until": now + timedelta(days=1)} if state == "acknowledged" else {}
    drift = DriftReview.objects.create(
        definition=active_definition,
        fingerprint="f",
        kind="conflict" if state == "conflict" else "extra",
        state="open" if state == "conflict" else state,
        name="r1_vnc",
        first_seen=now,
        last_seen=now,
        **until,
    )
    page = reverse("definition_drift", args=[active_definition.pk])
    assert deviations(people, until_next_week(DRIFT, now), state, page, address_of_object(drift.pk)) == []


@pytest.mark.parametrize("state", ["flagged", "regressed", "fine"])
def test_a_review_offers_its_actions_by_state(people, active_definition, state, now):
    if state == "regressed":
        active_definition.revisions.update(outcome="regressed")
    flags = {"cpu_cores": "over"} if state == "flagged" else {}
    DefinitionAssessment.objects.update_or_create(
        definition=active_definition,
        defaults={
            "flags": flags,
            "recommended_cpu_cores": 1,
            "n": 22,
            "epoch": active_definition.topology_hash,
        },
    )
    page = reverse("definition_review", args=[active_definition.pk])
    actions = until_next_week(REVIEW, now)
    assert deviations(people, actions, state, page, address_of_object(active_definition.pk)) == []


@pytest.mark.parametrize("state", ["counts", "too_short", "excluded"])
def test_an_observed_session_offers_its_actions_by_state(
    people, active_definition, project, operator, state, now
):
    length = timedelta(minutes=5 if state == "too_short" else 60)
    session = make_past_session(active_definition, project, operator, ended=now, length=length)
    post(session, seen(now), now)
    if state == "excluded":
        exclude_session(session=session, reason="By hand", actor=SYSTEM, now=now)
    assert deviations(people, EVIDENCE, state, reverse("evidence_list"), address_of_object(session.pk)) == []


@pytest.mark.parametrize("state", ["older", "current"])
def test_a_revision_offers_its_actions_by_state(people, active_definition, state, now):
    definition = active_definition
    more = {"cpu_cores": Decimal(3)}
    revise_definition(
        definition=definition, requirements=more, based_on=1, reason="More", actor=SYSTEM, now=now
    )
    number = 1 if state == "older" else 2
    page = reverse("definition_revisions", args=[definition.pk])
    assert deviations(people, REVISION, state, page, address_of_object(definition.pk, number)) == []
