"""An Operator moves a waiting session to another pool."""

from __future__ import annotations

import pytest
from django.urls import reverse

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog
from scheduling.models import Phase
from tests.support.capacity_setup import pool_named

MOVE = {"pool": "cml-us", "reason": "It is nearer"}


@pytest.fixture
def move_url(pool, session) -> str:
    pool_named("cml-us")
    pool_named("off", enabled=False)
    pool_named("eve", system="eve-ng")
    return reverse("session_pool", args=[session.pk])


def test_the_wait_reasons_page_links_to_the_move_dialog(login_as, operator, session, move_url):
    page = login_as(operator).get(reverse("session_wait_reasons", args=[session.pk])).content.decode()
    assert f'href="{move_url}" hx-get="{move_url}" hx-target="#dialog"' in page


def test_enabled_pools_of_the_same_system_are_offered(login_as, operator, move_url):
    response = login_as(operator).get(move_url)
    choices = [name for name, _ in response.context["form"].fields["pool"].widget.choices]
    assert "cml-us" in choices
    assert not {"cml-eu", "off", "eve"} & set(choices)
    assert "The session is waiting in cml-eu. It keeps its age and priority." in response.content.decode()


def test_a_session_is_moved_and_the_page_confirms_it(login_as, operator, session, move_url):
    client = login_as(operator)
    response = client.post(move_url, MOVE, follow=True)
    assert response.redirect_chain[-1][0] == reverse("session_detail", args=[session.pk])
    assert f"Session {session.short_id} moved to cml-us." in response.content.decode()
    assert session.reservations.get(phase=Phase.PENDING).pool.name == "cml-us"
    assert ChangeLog.objects.get(event="session.moved").reason == "It is nearer"


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"pool": "off"}, "pool", "The pool off is disabled."),
        ({"pool": "eve"}, "pool", "The pool eve is for eve-ng, not for cml."),
        ({"pool": "nowhere"}, "pool", "There is no pool “nowhere”."),
        ({"pool": "cml-eu"}, "pool", "The session is already waiting in cml-eu."),
        ({"pool": ""}, "pool", "This field is required."),
        ({"reason": ""}, "reason", "This field is required."),
    ],
)
def test_an_unsuitable_pool_is_reported_at_its_field(
    login_as, operator, session, move_url, change, field, message
):
    response = login_as(operator).post(move_url, {**MOVE, **change})
    assert response.status_code == 422
    assert response.context["form"].errors == {field: [message]}
    session.refresh_from_db()
    assert session.pool == "cml-eu"


def test_a_session_that_no_longer_waits_is_reported_above_the_form(login_as, operator, session_in, move_url):
    session = session_in(SessionStatus.RUNNING)
    response = login_as(operator).post(reverse("session_pool", args=[session.pk]), MOVE)
    assert response.status_code == 422
    assert "only pending sessions can be moved" in response.content.decode()
