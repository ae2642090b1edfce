"""Pages with far-reaching actions require a reason and record it."""

import pytest
from django.urls import reverse

from lcm.models import ChangeLog
from scheduling.models import Pool
from scheduling.placement.framework.configuration import DEFAULT_CONFIGURATION
from tests.lcm.web.test_permission_matrix import PAGES, address_of
from tests.support.factories import DomainFactory, make_project


@pytest.fixture
def addresses(project, viewer, controller, active_definition) -> dict[str, str]:
    pool = Pool.objects.get(name="cml-eu")
    return {
        "domain.deleted": reverse("domain_delete", args=[DomainFactory(name="empty").pk]),
        "project.deleted": reverse("project_delete", args=[make_project("academy", "empty").pk]),
        "project.member_removed": reverse("member_remove", args=[project.pk, viewer.pk]),
        "token.revoked": reverse("token_revoke", args=[controller.token.pk]),
        "definition.status_changed": reverse("definition_status", args=[active_definition.pk]),
        "definition.edited": reverse("definition_edit", args=[active_definition.pk]),
        "pool.edited": reverse("pool_scheduler", args=[pool.pk]),
        "fair_share.policy_changed": f"{reverse('fair_share_policy')}?pool={pool.name}",
    }


EDITED = {"system": "cml", "pool": "cml-us", "placement": "together", "max_duration": "08:00:00"}
# Form values besides the reason.
FORMS: dict[str, dict[str, str]] = {
    "domain.deleted": {},
    "project.deleted": {},
    "project.member_removed": {},
    "token.revoked": {},
    "definition.status_changed": {"status": "deprecated"},
    "definition.edited": EDITED,
    "pool.edited": {"scheduler": DEFAULT_CONFIGURATION.replace("[allocate]", "[allocate, reclaim]")},
    "fair_share.policy_changed": {
        "half_life_days": "3",
        "dampening_factor": "1",
        "lookback_days": "14",
        "normalisation": "relative",
        "order": "classic",
        "default_weight": "1",
    },
}
EVENTS = tuple(FORMS)


@pytest.fixture
def client_of_admin(client, admin):
    client.force_login(admin)
    return client


@pytest.mark.parametrize("event", EVENTS)
def test_the_page_shows_a_form_first(event, client_of_admin, addresses):
    assert 'name="reason"' in client_of_admin.get(addresses[event]).content.decode()
    assert not ChangeLog.objects.filter(event=event).exists()


@pytest.mark.parametrize("event", EVENTS)
def test_nothing_happens_without_a_reason(event, client_of_admin, addresses):
    assert client_of_admin.post(addresses[event], {**FORMS[event], "reason": " "}).status_code == 422
    assert not ChangeLog.objects.filter(event=event).exists()


@pytest.mark.parametrize("event", EVENTS)
def test_the_reason_is_in_the_change_log(event, client_of_admin, addresses):
    assert client_of_admin.post(addresses[event], {**FORMS[event], "reason": "over"}).status_code == 302
    assert ChangeLog.objects.get(event=event).reason == "over"


def test_every_form_with_a_reason_requires_it(client_of_admin, url_arguments):
    """All other fields keep their initial values."""
    checked = []
    for name, methods in PAGES.items():
        shown = (
            client_of_admin.get(address_of(name, url_arguments)) if set(methods) == {"GET", "POST"} else None
        )
        form = shown.context["form"] if shown and shown.context and "form" in shown.context else None
        if form is None or "reason" not in form.fields or not form.fields["reason"].required:
            continue
        before = ChangeLog.objects.count()
        form_values = {each.html_name: each.value() for each in form if each.value() is not None}
        response = client_of_admin.post(address_of(name, url_arguments), {**form_values, "reason": " "})
        assert (response.status_code, "reason" in response.context["form"].errors) == (422, True), name
        assert ChangeLog.objects.count() == before, name
        checked.append(name)
    assert len(checked) > 20, checked


def test_bulk_actions_require_a_reason(client_of_admin, url_arguments):
    checked = []
    for name in (name for name, methods in PAGES.items() if "_bulk_" in name and "GET" not in methods):
        before = ChangeLog.objects.count()
        response = client_of_admin.post(
            address_of(name, url_arguments), {"all": "1", "filter_query": "", "reason": " "}
        )
        assert ChangeLog.objects.count() == before, name
        if response.status_code == 302:  # No row of this kind exists here.
            continue
        assert (response.status_code, "reason" in response.context["form"].errors) == (422, True), name
        checked.append(name)
    assert len(checked) > 8, checked


def test_other_statuses_need_no_reason(client_of_admin, definition):
    address = reverse("definition_status", args=[definition.pk])
    assert client_of_admin.post(address, {"status": "active"}).status_code == 302
    definition.refresh_from_db()
    assert definition.status == "active"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 302),
        ({"description": "Two routers and a host"}, 302),
        ({"placement": "spread"}, 422),
        ({"preemptible": "on"}, 422),
        ({"slot_labels-0-key": "gpu", "slot_labels-0-value": "a10"}, 422),
        ({"max_duration": "04:00:00"}, 422),
    ],
)
def test_editing_a_definition_requires_a_reason_except_for_its_description(
    changed, status, client_of_admin, active_definition
):
    address = reverse("definition_edit", args=[active_definition.pk])
    same = {**EDITED, "pool": active_definition.pool, "description": active_definition.description}
    assert client_of_admin.post(address, {**same, **changed}).status_code == status


def test_a_token_is_rotated_with_a_reason(client_of_admin, controller):
    address = reverse("token_rotate", args=[controller.token.pk])
    assert 'name="reason"' in client_of_admin.get(address).content.decode()
    assert client_of_admin.post(address).status_code == 422
    assert not ChangeLog.objects.filter(event="token.revoked").exists()
    assert "lcm_" in client_of_admin.post(address, {"reason": "yearly"}).content.decode()
    assert ChangeLog.objects.get(event="token.revoked").reason == "yearly"


def test_a_member_with_an_active_session_cannot_be_removed(client_of_admin, session):
    address = reverse("member_remove", args=[session.project.pk, session.owner.pk])
    page = client_of_admin.post(address, {"reason": "over"})
    assert page.status_code == 422
    assert "cannot leave" in page.content.decode()
