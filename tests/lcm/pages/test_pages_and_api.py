"""A page and the matching API call have the same policy and hide the same values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import reverse

from lcm.cml.topology.redaction import REDACTED
from lcm.domain.actors import Actor
from lcm.domain.roles import Role
from lcm.models import ChangeLog
from lcm.services import people
from tests.lcm.web.test_permission_matrix import API, PAGES, address_of
from tests.support.factories import LAB, make_definition, make_session

# Each page with the API calls that show or change the same object.
COUNTERPARTS: dict[str, tuple[str, ...]] = {
    "session_list": ("GET api:session-list",),
    "session_create": ("POST api:session-list",),
    "session_detail": ("GET api:session-detail",),
    "session_cancel": ("POST api:session-cancel",),
    "session_bulk_cancel": ("POST api:session-cancel",),
    "session_extend": ("POST api:session-extend",),
    "session_bulk_extend": ("POST api:session-extend",),
    "session_bulk_priority": ("POST api:session-priority",),
    "session_access": ("GET capacity:session-access",),
    "session_wait_reasons": ("GET capacity:session-explain",),
    "session_capacity": ("GET capacity:reservation-list", "GET capacity:reservation-detail"),
    "session_pool": ("POST capacity:session-move",),
    "session_observation": (
        "GET observations:session-resource-observations",
        "GET observations:session-observe-resources",
    ),
    "session_observe": ("POST observations:session-observe-resources",),
    "session_live": ("GET observations:session-live-stats", "GET observations:session-live-history"),
    "session_exclude": ("POST observations:session-exclude",),
    "session_include": ("POST observations:session-include",),
    "evidence_bulk_exclude": ("POST observations:session-exclude",),
    "evidence_bulk_include": ("POST observations:session-include",),
    "definition_list": ("GET api:definition-list",),
    "definition_import": ("POST api:definition-import",),
    "definition_bulk_import": ("POST api:definition-import",),
    "definition_detail": ("GET api:definition-detail",),
    "definition_edit": ("PATCH api:definition-detail",),
    "definition_delete": ("DELETE api:definition-detail",),
    "definition_status": ("POST api:definition-set-status",),
    "definition_bulk_activate": ("POST api:definition-set-status",),
    "definition_bulk_deprecate": ("POST api:definition-set-status",),
    "definition_revisions": ("GET api:definition-revisions",),
    "definition_revise": ("POST api:definition-revise",),
    "definition_ports": ("POST api:definition-revise",),
    "definition_revert": ("POST api:definition-revert",),
    "definition_review": ("GET observations:definition-resource-observations",),
    "definition_port_review": ("GET observations:definition-port-review",),
    "definition_apply_ports": ("POST observations:definition-apply-ports",),
    "evidence_list": ("GET observations:definition-resource-observations",),
    "definition_preview": ("POST observations:definition-preview",),
    "definition_apply": ("POST observations:definition-apply",),
    "review_snooze": ("POST observations:definition-snooze",),
    "review_dismiss": ("POST observations:definition-dismiss",),
    "definition_drift": ("GET observations:drift-list",),
    "drift_list": ("GET observations:drift-list", "GET observations:drift-detail"),
    "drift_acknowledge": ("POST observations:drift-acknowledge",),
    "drift_bulk_acknowledge": ("POST observations:drift-acknowledge",),
    "drift_reopen": ("POST observations:drift-reopen",),
    "slot_live": ("POST observations:live-stats-list",),
    "busiest_sessions": ("POST observations:live-stats-list",),
    "domain_list": ("GET api:domain-list",),
    "domain_create": ("POST api:domain-list",),
    "domain_detail": ("GET api:domain-detail",),
    "domain_edit": ("PATCH api:domain-detail",),
    "domain_delete": ("DELETE api:domain-detail",),
    "project_list": ("GET api:project-list",),
    "project_create": ("POST api:project-list",),
    "project_detail": ("GET api:project-detail",),
    "project_edit": ("PATCH api:project-detail",),
    "project_delete": ("DELETE api:project-detail",),
    "member_list": ("GET api:project-members",),
    "member_add": ("POST api:project-members",),
    "member_remove": ("POST api:project-remove-member",),
    "person_list": ("GET api:user-list", "GET api:user-detail"),
    "person_create": ("POST api:user-list",),
    "person_import": ("POST api:user-list",),
    "person_role": ("POST api:user-role",),
    "person_password_link": ("POST api:user-password-link",),
    "view_create": ("POST api:saved-view-list",),
    "view_edit": ("PATCH api:saved-view-detail", "GET api:saved-view-detail"),
    "view_delete": ("DELETE api:saved-view-detail",),
    "view_default": ("POST api:saved-view-default",),
    "token_list": ("GET api:token-list", "GET api:token-detail"),
    "token_create": ("POST api:token-list",),
    "token_rotate": ("POST api:token-rotate",),
    "token_revoke": ("POST api:token-revoke",),
    "token_bulk_revoke": ("POST api:token-revoke",),
    "delivery_list": ("GET api:delivery-list",),
    "delivery_detail": ("GET api:delivery-detail",),
    "delivery_retry": ("POST api:delivery-retry",),
    "delivery_bulk_retry": ("POST api:delivery-retry",),
    "event_type_list": ("GET api:event-type-list",),
    "event_type_detail": ("GET api:event-type-detail", "GET api:event-type-schema"),
    "rule_list": ("GET api:event-rule-list",),
    "rule_create": ("POST api:event-rule-list",),
    "rule_preview": ("GET api:event-rule-preview",),
    "rule_edit": ("PATCH api:event-rule-detail", "GET api:event-rule-detail"),
    "rule_delete": ("DELETE api:event-rule-detail",),
    "rule_test": ("POST api:event-rule-test",),
    "inbox_list": ("GET api:inbox-list",),
    "inbox_open": ("GET api:inbox-detail", "POST api:inbox-read"),
    "inbox_read": ("POST api:inbox-read",),
    "inbox_unread": ("POST api:inbox-unread",),
    "inbox_read_all": ("POST api:inbox-read-all",),
    "notification_settings": (
        "GET api:subscription-list",
        "PATCH api:subscription-detail",
        "GET api:watch-list",
        "GET api:watch-detail",
    ),
    "watch": ("POST api:watch-list", "DELETE api:watch-detail"),
    "webhook_list": ("GET api:webhook-list",),
    "webhook_create": ("POST api:webhook-list",),
    "webhook_detail": ("GET api:webhook-detail",),
    "webhook_edit": ("PATCH api:webhook-detail",),
    "webhook_rotate": ("POST api:webhook-rotate",),
    "webhook_delete": ("DELETE api:webhook-detail",),
    "webhook_test": ("POST api:webhook-test",),
    "job_list": ("GET api:job-list",),
    "job_detail": ("GET api:job-detail",),
    "job_retry": ("POST api:job-retry",),
    "change_list": ("GET api:change-list",),
    "change_detail": ("GET api:change-detail",),
    "pool_list": ("GET capacity:pool-list",),
    "pool_create": ("POST capacity:pool-list",),
    "pool_detail": ("GET capacity:pool-detail",),
    "pool_board": ("GET capacity:pool-detail",),
    "pool_edit": ("PATCH capacity:pool-detail",),
    "pool_delete": ("DELETE capacity:pool-detail",),
    "pool_scheduler": ("PATCH capacity:pool-detail",),
    "queue_list": ("GET capacity:reservation-list",),
    "queue_ticks": ("GET capacity:tick-list",),
    "queue_bulk_move": ("POST capacity:session-move",),
    "queue_bulk_cancel": ("POST api:session-cancel",),
    "dry_run": ("POST capacity:pool-dry-run",),
    "overview_ticks": ("GET capacity:tick-list",),
    "tick_list": ("GET capacity:tick-list",),
    "tick_detail": ("GET capacity:tick-detail", "GET capacity:tick-decisions"),
    "decision_list": ("GET capacity:decision-list",),
    "slot_list": ("GET capacity:slot-list",),
    "slot_detail": ("GET capacity:slot-detail",),
    "slot_cordon": ("POST capacity:slot-cordon",),
    "slot_bulk_cordon": ("POST capacity:slot-cordon",),
    "slot_uncordon": ("POST capacity:slot-uncordon",),
    "slot_bulk_uncordon": ("POST capacity:slot-uncordon",),
    "slot_drain": ("POST capacity:slot-drain",),
    "slot_bulk_drain": ("POST capacity:slot-drain",),
    "slot_timeline": ("GET capacity:slot-timeline",),
    "pool_timeline": ("GET capacity:pool-timeline",),
    "session_timeline": ("GET capacity:session-timeline",),
    "slot_cancel_drain": ("POST capacity:slot-cancel-drain",),
    "slot_retry": ("POST capacity:slot-retry",),
    "slot_bulk_retry": ("POST capacity:slot-retry",),
    "slot_labels": ("POST capacity:slot-labels",),
    "slot_terminate": ("POST capacity:slot-terminate",),
    "reservation_list": ("GET capacity:reservation-list",),
    "reservation_detail": ("GET capacity:reservation-detail",),
    "reservation_cancel": ("POST capacity:reservation-cancel",),
    "reservation_bulk_cancel": ("POST capacity:reservation-cancel",),
    "observer_list": ("GET capacity:observer-list",),
    "observer_board": ("GET capacity:observer-list",),
    "observer_detail": ("GET capacity:observer-detail",),
    "run_list": ("GET capacity:observer-detail",),
    "observer_run": ("POST capacity:observer-run",),
    "fair_share": (
        "GET fairshare:fair-share-list",
        "GET fairshare:fair-share-detail",
        "GET fairshare:fair-share-policy-list",
        "GET fairshare:fair-share-policy-detail",
    ),
    "fair_share_weights": ("POST fairshare:fair-share-weights",),
    "fair_share_weights_bar": ("POST fairshare:fair-share-preview",),
    "fair_share_policy": (
        "PATCH fairshare:fair-share-policy-detail",
        "POST fairshare:fair-share-policy-preview",
    ),
    "usage_explorer": ("GET fairshare:usage-bucket-list",),
    "overview_usage": ("GET fairshare:usage-bucket-list",),
}
PAGES_WITHOUT_A_CALL = {
    "home": "summarises lists that have calls of their own",
    "search": "finds the names of objects that viewers can list",
    "search_suggestions": "the first results of the search",
    "shortcuts": "lists the keyboard shortcuts",
    "session_preview": "a part of the form that requests a session; API clients get the wait reasons",
    "help": "documentation",
    "suggest": "completes names in the forms of operators",
    "login": "signs in; API clients use tokens",
    "logout": "signs out; API clients use tokens",
    "set_theme": "changes the appearance of pages",
    "list_layout": "changes how a person looks at a list of pages",
    "profile": "changes the caller's own account",
    "password_change": "changes the caller's own account",
    "set_password": "for people who cannot sign in yet",
    "unsubscribe": "a link in e-mails",
    "controller_list": "shows leases, which controllers hold through /api/internal/",
    "controller_board": "shows leases, which controllers hold through /api/internal/",
    "usage_check": "checks sums; a maintenance task of the page",
    "usage_rebuild": "rebuilds sums; a maintenance task of the page",
    "favicon": "is a static file",
    "healthz": "is for probes",
    "readyz": "is for probes",
    "metrics": "is for Prometheus; METRICS_TOKEN or a loopback address is needed",
}
CALLS_WITHOUT_A_PAGE = {
    "GET api:saved-view-list": "pages show the views in the menu of their list",
    "POST api:definition-list": "creates a definition without a topology, for another controller",
    "POST api:session-arrive": "is called by the system that lets the user in",
    "POST capacity:reservation-list": "reserves capacity for another program",
    "POST capacity:reservation-renew": "reserves capacity for another program",
    "POST capacity:reservation-release": "reserves capacity for another program",
    "GET observations:internal-prometheus-targets-list": "is for Prometheus",
    "POST capacity:internal-boot-list": "is for workers that boot; they show a boot token",
    "GET api:schema": "describes the API",
    "GET api:docs": "describes the API",
}


def least_role(rule: str) -> str:
    """Return the lowest role for people; controllers are limited by their scopes."""
    return rule.removesuffix(" + controller")


def calls() -> Iterator[tuple[str, str]]:
    """Return every API call for people with its policy."""
    for name, methods in API.items():
        for method, rule in methods.items():
            if rule != "controller":
                yield f"{method} {name}", rule


def test_every_page_has_a_counterpart_or_a_reason_to_have_none():
    assert set(COUNTERPARTS).isdisjoint(PAGES_WITHOUT_A_CALL)
    assert {*COUNTERPARTS, *PAGES_WITHOUT_A_CALL} == set(PAGES)


def test_every_call_has_a_counterpart_or_a_reason_to_have_none():
    mapped = {call for named in COUNTERPARTS.values() for call in named}
    assert mapped.isdisjoint(CALLS_WITHOUT_A_PAGE)
    assert {*mapped, *CALLS_WITHOUT_A_PAGE} == {call for call, _ in calls()}


def test_a_page_and_its_calls_need_the_same_role():
    rules = {call: least_role(rule) for call, rule in calls()}
    found = {
        page: {*PAGES[page].values(), *(rules[call] for call in COUNTERPARTS[page])}
        for page in PAGES.keys() & COUNTERPARTS
    }
    assert {page: roles for page, roles in found.items() if len(roles) > 1} == {}


SECRET = "enable-secret-9f3c"
CONFIGURED = LAB.replace("label: r1,", f"label: r1, configuration: 'enable secret {SECRET}',")


@pytest.fixture
def secrets(
    url_arguments: dict[str, Any], viewer, operator, admin, project, now
) -> dict[str, dict[str, Any]]:
    """URL arguments of a definition with passwords and of a person whose e-mail and role changed."""
    definition = make_definition("secrets", topology=CONFIGURED, pool="cml-eu", now=now)
    session = make_session(definition, project, operator, now=now)
    people.update_profile(user=viewer, email="vera.new@example.org", actor=Actor.person(viewer))
    change = ChangeLog.objects.get(event="person.profile_changed")
    for role in (Role.ADMIN, Role.OPERATOR):
        people.set_role(user=operator, role=role, is_active=True, reason="needed", by=admin)
    url_arguments["by_prefix"] |= {
        "definition": {"pk": definition.pk},
        "session": {"pk": session.pk},
        "change": {"pk": change.pk},
    }
    return url_arguments


# The caller's own address, and a page without data.
OWN_DATA = ("profile", "notification_settings", "api:docs")


def readable(role: str, url_arguments: dict[str, Any]) -> Iterator[str]:
    """Return every URL whose GET requires exactly this role; lists also as exports and with a search."""
    for name, methods in (PAGES | API).items():
        if least_role(methods.get("GET", "")) == role and name not in OWN_DATA:
            address = address_of(name, url_arguments)
            yield address
            if name in PAGES and name.endswith("_list"):
                yield from (f"{address}?format=csv", f"{address}?format=json")
    if role == "operator":
        return
    # Only part of the secret: pages repeat the search text.
    for text in (SECRET[:-1], "example.org", "secrets"):
        yield f"{reverse('search')}?q={text}"
        yield f"{reverse('search_suggestions')}?q={text}"
        yield f"/api/lablet-definitions/?q={text}"


def body_of(response: Any) -> str:
    content = b"".join(response) if response.streaming else response.content
    return content.decode()


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_responses_hide_emails_and_roles_below_admin_and_configurations_from_viewers(
    role, secrets, request, client, operator
):
    client.force_login(request.getfixturevalue(role))
    hidden = ["@example.org", f"{operator} is ", *([SECRET] if role == "viewer" else [])]
    for address in readable(role, secrets):
        response = client.get(address)
        text = body_of(response)
        assert response.status_code in (200, 302, 404), address
        assert [each for each in hidden if each in text] == [], address


def test_operators_see_configurations_and_viewers_a_redaction_notice(api, viewer, operator, secrets):
    for name in ("definition_detail", "api:definition-detail"):
        address = address_of(name, secrets)
        for person, shown in ((viewer, REDACTED), (operator, SECRET)):
            response = api(person).get(address)
            assert shown in body_of(response), (name, person)
            # The response depends on the role, so no cache may share it.
            assert "private" in response["Cache-Control"], name


def test_changes_of_people_are_shown_with_their_values_to_admins_only(api, viewer, admin, secrets):
    for name in ("change_detail", "api:change-detail"):
        address = address_of(name, secrets)
        assert "vera.new@example.org" in body_of(api(admin).get(address))
        assert "example.org" not in body_of(api(viewer).get(address))
