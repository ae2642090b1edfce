"""A person who may use the admin, and one object of every model."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib import admin as django_admin
from django.contrib.auth.models import Group
from django.db.models import Model
from django.test import Client

from fairshare.models import (
    Allocation,
    FairShare,
    FairShareCalculation,
    FairSharePolicy,
    UsageBatch,
    UsageBucket,
    UsageCheck,
    UsageRecord,
)
from lcm.domain.roles import Role
from lcm.models import (
    DeliveryAttempt,
    FeedEntry,
    FeedHead,
    Heartbeat,
    IdempotentResponse,
    Job,
    LabletSession,
    SavedView,
    User,
    Watch,
)
from observations.models import (
    DriftReview,
    ObservationRequest,
    Presence,
    ResourceAggregate,
    ScrapeTarget,
    SessionObservation,
)
from scheduling.models import (
    Decision,
    EndedPart,
    Explanation,
    HandlerFailure,
    Installation,
    LastVerdict,
    LaunchAttempt,
    Observer,
    ObserverRun,
    Pool,
    PortAllocation,
    ProcessLease,
    QueueOrder,
    Reservation,
    ReservationPart,
    SessionLab,
    SimulatedInstance,
    Slot,
    SlotState,
    TickRun,
)
from tests.support.factories import make_delivery, make_person, make_person_token


@pytest.fixture
def staff_admin(db: None) -> User:
    """A staff member with the Admin role, not a superuser."""
    return make_person("fay", Role.ADMIN, is_staff=True)


@pytest.fixture
def staff_client(staff_admin: User) -> Client:
    client = Client()
    client.force_login(staff_admin)
    return client


@pytest.fixture
def everything(session: LabletSession, viewer: User, now: datetime) -> dict[str, Model]:
    """One object of every registered model, by model name."""
    IdempotentResponse.objects.create(principal="person x", key="key-1", fingerprint="f", status=201, body={})
    Heartbeat.objects.create(name="beat", at=now)
    Job.objects.create(kind="bulk", title="Cancel 2 sessions", actor="otto")
    FeedEntry.objects.create(kind="session", object_id=session.pk, pool="cml-eu", at=now)
    FeedHead.objects.create()
    make_person_token(viewer, "laptop")
    delivery = make_delivery(now)[2]
    DeliveryAttempt.objects.create(delivery=delivery, at=now, duration_ms=7, status=500, error="HTTP 500")
    SavedView.objects.create(
        list_name="sessions", name="mine", owner=delivery.webhook.owner or User.objects.first()
    )
    Watch.objects.create(user=viewer, object_type="slot", object_id="1", object_label="slot 1")
    make_capacity(session, now)
    make_usage(session, now)
    make_observations(session, now)
    Group.objects.get_or_create(name="Guests")
    return {
        str(model._meta.model_name): model._default_manager.order_by("pk").last()
        for model in django_admin.site._registry
    }


def make_capacity(session: LabletSession, now: datetime) -> None:
    """A slot of the session's pool, with one object of every related model."""
    pool = Pool.objects.get(name=session.pool)
    slot = Slot.objects.create(
        pool=pool, number=1, state=SlotState.READY, max_leases=5, cpu_cores=16, memory_gb=64, storage_gb=500
    )
    LaunchAttempt.objects.create(slot=slot, token="t1", requested_at=now)
    PortAllocation.objects.create(slot=slot, port=2000, name="r1_serial", leaked=True)
    TickRun.objects.create(pool=pool, started_at=now, duration_ms=7)
    ProcessLease.objects.create(name=f"tick:{pool.pk}", holder="worker-1", expires_at=now)
    make_decision(pool, slot, session.reservations.get(), now)
    Installation.objects.create()
    SimulatedInstance.objects.create(id="sim-1", pool=pool.name, slot_id="1", token="t1", launched_at=now)


def make_decision(pool: Pool, slot: Slot, reservation: Reservation, now: datetime) -> None:
    """Scheduler records of one reservation."""
    amounts = {"cpu_cores": 1, "memory_gb": 1, "storage_gb": 1}
    ReservationPart.objects.create(reservation=reservation, slot=slot, kernels=["r1"], **amounts)
    EndedPart.objects.create(reservation=reservation, slot=slot)
    SessionLab.objects.create(
        session=reservation.session, slot=slot, attempt=1, lab="90f84e38", observed_at=now
    )
    QueueOrder.objects.create(pool=pool, at=now, ids=reservation.pk.bytes)
    LastVerdict.objects.create(reservation=reservation, summary="waiting:memory_gb")
    explanation = Explanation.objects.create(
        digest="d1", main_reason="memory_gb", message="No room.", slots=1
    )
    Decision.objects.create(
        reservation=reservation, pool=pool, tick=TickRun.objects.get(pool=pool), at=now, outcome="waiting",
        position=1, why=explanation,
    )  # fmt: skip


def make_usage(session: LabletSession, now: datetime) -> None:
    """One row of every usage and fair-share model."""
    pool, day = Pool.objects.get(name=session.pool), now.date()
    amounts = {"cpu_cores": 1, "memory_gb": 1, "storage_gb": 1, "gpu": 0}
    of_session = {"session_id": session.pk, "user_id": session.owner_id, "project_id": session.project_id}
    allocation = Allocation.objects.create(
        kernel_id=session.pk, attempt=1, domain_id=session.project.domain_id, pool=pool.name, started_ms=0,
        cursor_ms=0, **of_session, **amounts,
    )  # fmt: skip
    batch = UsageBatch.objects.create(recorded_at=now, record_count=1, first_day=day, last_day=day)
    UsageRecord.objects.create(
        allocation=allocation, batch=batch, period_start=0, period_ms=300_000, **amounts
    )
    subject = {"level": "user", "subject_id": session.owner_id, "parent_id": session.project_id}
    UsageBucket.objects.create(day=day, pool=pool.name, **subject, **amounts)
    UsageCheck.objects.create(checked_at=now, first_day=day, last_day=day, record_count=1, difference_count=0)
    FairSharePolicy.objects.create(pool=pool)
    FairShareCalculation.objects.create(pool=pool, at=now, first_day=day, last_day=day)
    FairShare.objects.create(pool=pool, **subject)
    Observer.objects.create(name="usage-record", failing_announced_at=now)
    ObserverRun.objects.create(observer="usage-record", started_at=now, duration_ms=3)
    HandlerFailure.objects.create(handler="end-running", session=session, last_at=now)


def make_observations(session: LabletSession, now: datetime) -> None:
    """One row of every observation model."""
    definition_fields = {"definition": session.definition, "revision": session.revision, "epoch": "e1"}
    times = {"observed_at": now, "recorded_at": now}
    SessionObservation.objects.create(
        session=session, is_sample=True, observed_resources={}, **times, **definition_fields
    )
    ResourceAggregate.objects.create(**definition_fields)
    DriftReview.objects.create(
        definition=session.definition, fingerprint="f1", kind="extra", name="r1_serial", first_seen=now,
        last_seen=now,
    )  # fmt: skip
    later = now + timedelta(minutes=2)
    ObservationRequest.objects.create(session=session, actor="otto", requested_at=now, expires_at=later)
    Presence.objects.create(kind="web", name="w1", address="w1:8000", seen_at=now)
    ScrapeTarget.objects.create(kind="web", name="w1", address="w1:8000", since=now)
