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
def login_as(client: Client) -> Callable[[User], Client]:
    """`login_as(person)`: a client signed in as this user."""

    def log_in(person: User) -> Client:
        client.force_login(person)
        return client

    return log_in


@pytest.fixture
def page_text() -> Callable[[object], str]:
    """`page_text(page)`: the text of a page, without markup."""

    def text(page: object) -> str:
        body = re.sub(r"<[^>]+>", " ", page.content.decode())
        return re.sub(r"\s+", " ", html.unescape(body))

    return text
