"""Someone who may use the admin, and one of everything it shows."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.contrib import admin as django_admin
from django.contrib.auth.models import Group
from django.db.models import Model
from django.test import Client

from lcm.models import FeedEntry, FeedHead, Heartbeat, IdempotentAnswer, LabletSession, User
from lcm.roles import Role
from scheduling.models import (
    LaunchAttempt,
    Lease,
    Pool,
    PortAllocation,
    SimulatedInstance,
    Slot,
    SlotState,
    TickRun,
)
from tests.factories import make_person, make_person_token


@pytest.fixture
def fixer(db: None) -> User:
    """An Admin on the staff, not a superuser."""
    return make_person("fay", Role.ADMIN, is_staff=True)


@pytest.fixture
def client_of_fixer(fixer: User) -> Client:
    client = Client()
    client.force_login(fixer)
    return client


@pytest.fixture
def everything(session: LabletSession, viewer: User, now: datetime) -> dict[str, Model]:
    """One object of every registered model, by model name."""
    IdempotentAnswer.objects.create(principal="person x", key="key-1", fingerprint="f", status=201, body={})
    Heartbeat.objects.create(name="beat", at=now)
    FeedEntry.objects.create(kind="session", object_id=session.pk, pool="cml-eu", at=now)
    FeedHead.objects.create()
    make_person_token(viewer, "laptop")
    make_capacity(session, now)
    Group.objects.get_or_create(name="Guests")
    return {
        str(model._meta.model_name): model._default_manager.order_by("pk").last()
        for model in django_admin.site._registry
    }


def make_capacity(session: LabletSession, now: datetime) -> None:
    """A slot of the session's pool, with one of everything that can belong to it."""
    pool = Pool.objects.get(name=session.pool)
    slot = Slot.objects.create(
        pool=pool, number=1, state=SlotState.READY, max_leases=5, cpu_cores=16, memory_gb=64, storage_gb=500
    )
    LaunchAttempt.objects.create(slot=slot, token="t1", requested_at=now)
    PortAllocation.objects.create(slot=slot, port=2000, name="r1_serial", leaked=True)
    TickRun.objects.create(pool=pool, started_at=now, duration_ms=7)
    Lease.objects.create(name=f"tick:{pool.pk}", holder="worker-1", expires_at=now)
    SimulatedInstance.objects.create(id="sim-1", pool=pool.name, slot_id="1", token="t1", launched_at=now)
