"""Plugins, schedulers and sessions of several projects, for tests that run ticks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletDefinition, LabletSession, Project
from lcm.services.session_transitions import transition_session
from scheduling.models import Phase, Reservation, ReservationPart, Slot
from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.configuration import DEFAULT_CONFIGURATION
from scheduling.placement.framework.plugin import Plugin, register_plugin
from tests.support.factories import WAY_TO, make_person, make_project, make_session
from tests.support.fleet import Fleet, active_reservation

RECLAIM = DEFAULT_CONFIGURATION.replace("actions: [allocate]", "actions: [allocate, reclaim]")
PREEMPT = DEFAULT_CONFIGURATION.replace("actions: [allocate]", "actions: [allocate, preempt]")

FAILING = f"{DEFAULT_CONFIGURATION}  - name: failing_in_tests\n"
WITH_LONG_REASONS = f"{DEFAULT_CONFIGURATION}  - name: wordy_in_tests\n"


@register_plugin("failing_in_tests")
@dataclass(frozen=True)
class FailingPlugin(Plugin):
    """A plugin that always raises."""

    def on_session_open(self, ssn: Any) -> None:
        ssn.add_predicate_fn(self.fail)

    def fail(self, task: Any, job: Any, node: Any) -> Reason | None:
        raise RuntimeError("the licence server does not respond")


@register_plugin("wordy_in_tests")
@dataclass(frozen=True)
class LongReasonPlugin(Plugin):
    """A plugin that rejects every slot with a reason code longer than its column."""

    def on_session_open(self, ssn: Any) -> None:
        ssn.add_predicate_fn(self.refuse, code="a-reason-" * 10)

    def refuse(self, task: Any, job: Any, node: Any) -> Reason | None:
        return Reason("a-reason-" * 10, "not today")


class SessionRequester:
    """A project whose only member requests sessions of one definition."""

    def __init__(self, fleet: Fleet, name: str, definition: LabletDefinition) -> None:
        self.fleet, self.definition = fleet, definition
        self.person = make_person(f"{name}-person")
        self.project: Project = make_project("academy", name, self.person)

    def request(self, **fields: Any) -> LabletSession:
        definition = fields.pop("definition", self.definition)
        return make_session(definition, self.project, self.person, now=self.fleet.clock(), **fields)

    def request_on(self, slot: Any, **fields: Any) -> LabletSession:
        session = self.request(**fields)
        self.fleet.assign(session, slot)
        for step in WAY_TO[SessionStatus.RUNNING][1:]:
            transition_session(session=session, to=step, actor=SYSTEM, now=self.fleet.clock())
        return session


def status_of(session: LabletSession) -> str:
    return LabletSession.objects.values_list("status", flat=True).get(pk=session.pk)


def slot_of(session: LabletSession) -> Any:
    return active_reservation(session).slot_id


def report_termination(session: LabletSession, fleet: Fleet) -> None:
    """Report the teardown of the lab, as a controller does."""
    session.refresh_from_db()
    transition_session(session=session, to=SessionStatus.TERMINATED, actor=SYSTEM, now=fleet.clock())


def _lease_counts(slot_ids: Iterable[UUID]) -> dict[UUID, int]:
    """Return the number of active reservations by slot, the expected lease counts."""
    keys = list(slot_ids)
    lease_counts: Counter[UUID] = Counter()
    undivided = Reservation.objects.filter(slot_id__in=keys, phase=Phase.READY, spread=False)
    for rows_with_lease in (undivided, ReservationPart.objects.filter(slot_id__in=keys)):
        rows: Any = rows_with_lease.order_by().values_list("slot_id").annotate(Count("pk"))
        lease_counts.update(dict(rows))
    return dict(lease_counts)


def check_leases() -> None:
    """Check that every slot counts its leases; spread sessions count once per slot."""
    slots = Slot.objects.all()
    lease_counts = _lease_counts(slot.pk for slot in slots)
    assert {slot.pk: slot.lease_count for slot in slots if slot.lease_count} == lease_counts
