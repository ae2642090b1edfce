"""A pool, and signed-in clients."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.test import Client

from lcm.models import User
from scheduling.models import Pool
from tests.support.capacity_setup import pool_named


@pytest.fixture
def pool(db: None) -> Pool:
    """cml-eu with a maximum of six slots."""
    return pool_named("cml-eu", max_slots=6, description="Evening courses")


@pytest.fixture
def by(client: Client) -> Callable[[User], Client]:
    """`by(person)`: a client signed in as this user."""

    def log_in(person: User) -> Client:
        client.force_login(person)
        return client

    return log_in


@pytest.fixture
def words() -> Callable[[object], str]:
    """`words(page)`: the text of a page, without markup."""

    def text(page: object) -> str:
        body = re.sub(r"<[^>]+>", " ", page.content.decode())
        return re.sub(r"\s+", " ", html.unescape(body))

    return text
