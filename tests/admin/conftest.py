"""Someone who may use the admin, and one of everything it shows."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.contrib import admin as django_admin
from django.contrib.auth.models import Group
from django.db.models import Model
from django.test import Client

from lcm.models import Heartbeat, IdempotentAnswer, LabletSession, User
from lcm.roles import Role
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
    make_person_token(viewer, "laptop")
    Group.objects.get_or_create(name="Guests")
    return {
        str(model._meta.model_name): model._default_manager.order_by("pk").last()
        for model in django_admin.site._registry
    }
