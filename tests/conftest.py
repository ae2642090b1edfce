"""Shared fixtures and pytest hooks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connections
from django.utils import timezone
from hypothesis import HealthCheck
from hypothesis import settings as properties
from rest_framework.test import APIClient

from lcm.domain.actors import Actor
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import DefinitionStatus, LabletDefinition, LabletSession, Project, User
from tests.support.factories import (
    TokenHolder,
    make_controller,
    make_definition,
    make_person,
    make_project,
    make_session,
)

# No deadlines: a property does not fail because the machine is busy. Benchmarks measure durations.
properties.register_profile(
    "patient", properties.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
properties.load_profile("patient")

Caller = User | TokenHolder | None


# Folders with slow tests, which make test-fast skips.
SLOW_FOLDERS = (
    "docs",
    "end_to_end",
    "fairshare",
    "lcm/admin",
    "lcm/api/watch",
    "lcm/cml",
    "lcm/controller",
    "observations",
    "scheduling/api",
    "scheduling/capacity/runtimes",
    "scheduling/pages",
    "scheduling/placement",
)
# Slow tests that do not depend on the database; make test runs them on PostgreSQL only.
ONCE = (
    "test_admin_access",
    "test_admin_pages",
    "test_bounded_calls",
    "test_pages_and_api",
    "test_permission_matrix",
    "test_query_counts",
)
TESTS = Path(__file__).parent
DATABASE = {"db", "transactional_db", "django_db_setup", "live_server"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.parent.relative_to(TESTS).as_posix()
        if f"{folder}/".startswith(tuple(f"{each}/" for each in SLOW_FOLDERS)):
            item.add_marker(pytest.mark.slow)
        if item.path.stem in ONCE:
            item.add_marker(pytest.mark.once)
        fixtures = set(getattr(item, "fixturenames", ()))
        if not fixtures & DATABASE and item.get_closest_marker("django_db") is None:
            item.add_marker(pytest.mark.plain)
    items.sort(key=lambda item: not _starts_processes(item))


def _starts_processes(item: pytest.Item) -> bool:
    """Whether a test starts processes; these run first, so that no xdist worker ends with a long test."""
    return all(item.get_closest_marker(name) for name in ("integration", "plain"))


@pytest.fixture(autouse=True)
def plain_settings(settings: Any) -> None:
    """Use no Redis, fast password hashes and plain static files; restore CONFIG after each test."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.CONFIG = dict(settings.CONFIG)
    cache.clear()


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


@pytest.fixture
def viewer(db: None) -> User:
    return make_person("vera", Role.VIEWER)


@pytest.fixture
def operator(db: None) -> User:
    return make_person("otto", Role.OPERATOR)


@pytest.fixture
def admin(db: None) -> User:
    return make_person("ada", Role.ADMIN)


@pytest.fixture
def stranger(db: None) -> User:
    """A person who can sign in but has no role."""
    return make_person("stan")


@pytest.fixture
def controller(db: None) -> TokenHolder:
    return make_controller("controller-eu", "pool:cml-eu")


@pytest.fixture
def other_controller(db: None) -> TokenHolder:
    return make_controller("controller-us", "pool:cml-us")


@pytest.fixture
def as_admin(admin: User) -> Actor:
    return Actor.person(admin)


@pytest.fixture
def as_operator(operator: User) -> Actor:
    return Actor.person(operator)


@pytest.fixture
def project(viewer: User, operator: User) -> Project:
    """academy / ccna, with the viewer and the operator as members."""
    return make_project("academy", "ccna", viewer, operator)


@pytest.fixture
def definition(db: None, now: datetime) -> LabletDefinition:
    """A draft of the small lab."""
    return make_definition("branch-office", status=DefinitionStatus.DRAFT, now=now)


@pytest.fixture
def active_definition(db: None, now: datetime) -> LabletDefinition:
    """The small lab as an active definition; its sessions wait in cml-eu."""
    return make_definition("campus", pool="cml-eu", now=now)


@pytest.fixture
def session(
    active_definition: LabletDefinition, project: Project, operator: User, now: datetime
) -> LabletSession:
    """The operator's session, pending in the pool cml-eu."""
    return make_session(active_definition, project, operator, now=now)


@pytest.fixture
def session_in(
    active_definition: LabletDefinition, project: Project, operator: User, now: datetime
) -> Callable[..., LabletSession]:
    """`session_in(status)`: create a session with all transitions up to this status."""

    def make(status: SessionStatus, **fields: Any) -> LabletSession:
        return make_session(active_definition, project, operator, **{"status": status, "now": now, **fields})

    return make


@pytest.fixture
def one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freeze the rate limiter in one window, however long the test takes."""
    monkeypatch.setattr("lcm.web.server.rate_limit.time", SimpleNamespace(time=lambda: 1_000_000_000.0))


@pytest.fixture
def api() -> Callable[..., APIClient]:
    """`api(caller)`: return a client signed in as a person, with a token, or (None) anonymous."""

    def client(as_: Caller = None, **options: Any) -> APIClient:
        api_client = APIClient(**options)
        if isinstance(as_, TokenHolder):
            api_client.credentials(HTTP_AUTHORIZATION=f"Bearer {as_.key}")
        elif as_ is not None:
            api_client.force_login(as_)
        return api_client

    return client


@pytest.fixture
def at_once() -> Callable[..., list[Any]]:
    """`at_once(f, g)`: start all functions together; return the result or the exception of each."""

    def run_all(*functions: Callable[[], Any]) -> list[Any]:
        start = Barrier(len(functions))

        def run(each: Callable[[], Any]) -> Any:
            try:
                start.wait(10)
                return each()
            except Exception as error:
                return error
            finally:
                connections.close_all()

        with ThreadPoolExecutor(len(functions)) as threads:
            return list(threads.map(run, functions))

    return run_all
