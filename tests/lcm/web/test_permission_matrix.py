"""Permission matrix: every URL, every method, every role.

The table is written by hand. A URL that is not in it fails, whatever its view declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from rest_framework.test import APIClient

from tests.support.factories import make_person_token

CAST = ("anonymous", "stranger", "viewer", "operator", "admin", "controller")
RANK = {"anonymous": 0, "stranger": 1, "viewer": 2, "operator": 3, "admin": 4}

# The lowest role for each method; "public" needs no login, "controller" is for controllers only.
PAGES: dict[str, dict[str, str]] = {
    "home": {"GET": "viewer"},
    "search": {"GET": "viewer"},
    "search_suggestions": {"GET": "viewer"},
    "shortcuts": {"GET": "viewer"},
    "overview_ticks": {"GET": "viewer"},
    "overview_usage": {"GET": "viewer"},
    "login": {"GET": "public", "POST": "public"},
    "logout": {"POST": "public"},
    "set_theme": {"POST": "public"},
    "help": {"GET": "viewer"},
    "suggest": {"GET": "operator"},
    "list_layout": {"POST": "viewer"},
    "view_create": {"GET": "viewer", "POST": "viewer"},
    "view_edit": {"GET": "viewer", "POST": "viewer"},
    "view_delete": {"GET": "viewer", "POST": "viewer"},
    "view_default": {"POST": "viewer"},
    "session_list": {"GET": "viewer"},
    "session_create": {"GET": "operator", "POST": "operator"},
    "session_preview": {"GET": "operator"},
    "session_bulk_extend": {"POST": "operator"},
    "session_bulk_priority": {"POST": "operator"},
    "session_bulk_cancel": {"POST": "operator"},
    "session_detail": {"GET": "viewer"},
    "session_cancel": {"GET": "operator", "POST": "operator"},
    "session_extend": {"GET": "operator", "POST": "operator"},
    "definition_list": {"GET": "viewer"},
    "definition_import": {"GET": "admin", "POST": "admin"},
    "definition_bulk_import": {"GET": "admin", "POST": "admin"},
    "definition_bulk_activate": {"POST": "admin"},
    "definition_bulk_deprecate": {"POST": "admin"},
    "definition_detail": {"GET": "viewer"},
    "definition_edit": {"GET": "admin", "POST": "admin"},
    "definition_revise": {"GET": "admin", "POST": "admin"},
    "definition_ports": {"GET": "admin", "POST": "admin"},
    "definition_status": {"GET": "admin", "POST": "admin"},
    "definition_delete": {"GET": "admin", "POST": "admin"},
    "definition_revisions": {"GET": "viewer"},
    "definition_revert": {"GET": "admin", "POST": "admin"},
    "domain_list": {"GET": "viewer"},
    "domain_create": {"GET": "admin", "POST": "admin"},
    "domain_detail": {"GET": "viewer"},
    "domain_edit": {"GET": "admin", "POST": "admin"},
    "domain_delete": {"GET": "admin", "POST": "admin"},
    "project_list": {"GET": "viewer"},
    "project_create": {"GET": "admin", "POST": "admin"},
    "project_detail": {"GET": "viewer"},
    "project_edit": {"GET": "admin", "POST": "admin"},
    "project_delete": {"GET": "admin", "POST": "admin"},
    "member_list": {"GET": "viewer"},
    "member_add": {"POST": "admin"},
    "member_remove": {"GET": "admin", "POST": "admin"},
    "profile": {"GET": "viewer", "POST": "viewer"},
    "password_change": {"GET": "viewer", "POST": "viewer"},
    "notification_settings": {"GET": "viewer", "POST": "viewer"},
    "watch": {"POST": "viewer"},
    "unsubscribe": {"GET": "public", "POST": "public"},
    "inbox_list": {"GET": "viewer"},
    "inbox_open": {"GET": "viewer"},
    "inbox_read": {"POST": "viewer"},
    "inbox_unread": {"POST": "viewer"},
    "inbox_read_all": {"POST": "viewer"},
    "person_list": {"GET": "admin"},
    "person_role": {"GET": "admin", "POST": "admin"},
    "person_create": {"GET": "admin", "POST": "admin"},
    "person_import": {"GET": "admin", "POST": "admin"},
    "person_password_link": {"GET": "admin", "POST": "admin"},
    "set_password": {"GET": "public", "POST": "public"},
    "token_list": {"GET": "admin"},
    "token_create": {"GET": "admin", "POST": "admin"},
    "token_rotate": {"GET": "admin", "POST": "admin"},
    "token_revoke": {"GET": "admin", "POST": "admin"},
    "token_bulk_revoke": {"POST": "admin"},
    "delivery_list": {"GET": "admin"},
    "delivery_detail": {"GET": "admin"},
    "delivery_retry": {"GET": "admin", "POST": "admin"},
    "delivery_bulk_retry": {"POST": "admin"},
    "event_type_list": {"GET": "viewer"},
    "event_type_detail": {"GET": "viewer"},
    "rule_list": {"GET": "admin"},
    "rule_create": {"GET": "admin", "POST": "admin"},
    "rule_preview": {"GET": "admin"},
    "rule_edit": {"GET": "admin", "POST": "admin"},
    "rule_delete": {"GET": "admin", "POST": "admin"},
    "rule_test": {"GET": "admin", "POST": "admin"},
    "webhook_list": {"GET": "admin"},
    "webhook_create": {"GET": "admin", "POST": "admin"},
    "webhook_detail": {"GET": "admin"},
    "webhook_edit": {"GET": "admin", "POST": "admin"},
    "webhook_rotate": {"GET": "admin", "POST": "admin"},
    "webhook_delete": {"GET": "admin", "POST": "admin"},
    "webhook_test": {"GET": "admin", "POST": "admin"},
    "job_list": {"GET": "viewer"},
    "job_detail": {"GET": "viewer"},
    "job_retry": {"POST": "operator"},
    "change_list": {"GET": "viewer"},
    "change_detail": {"GET": "viewer"},
    "pool_list": {"GET": "viewer"},
    "pool_create": {"GET": "admin", "POST": "admin"},
    "pool_detail": {"GET": "viewer"},
    "pool_board": {"GET": "viewer"},
    "pool_edit": {"GET": "admin", "POST": "admin"},
    "pool_delete": {"GET": "admin", "POST": "admin"},
    "pool_scheduler": {"GET": "admin", "POST": "admin"},
    "queue_list": {"GET": "viewer"},
    "queue_ticks": {"GET": "viewer"},
    "queue_bulk_move": {"POST": "operator"},
    "queue_bulk_cancel": {"POST": "operator"},
    "dry_run": {"GET": "operator", "POST": "operator"},
    "tick_list": {"GET": "viewer"},
    "tick_detail": {"GET": "viewer"},
    "decision_list": {"GET": "viewer"},
    "slot_list": {"GET": "viewer"},
    "slot_bulk_cordon": {"POST": "operator"},
    "slot_bulk_uncordon": {"POST": "operator"},
    "slot_bulk_retry": {"POST": "operator"},
    "slot_bulk_drain": {"POST": "operator"},
    "slot_detail": {"GET": "viewer"},
    "slot_cordon": {"GET": "operator", "POST": "operator"},
    "slot_uncordon": {"GET": "operator", "POST": "operator"},
    "slot_drain": {"GET": "operator", "POST": "operator"},
    "slot_labels": {"GET": "operator", "POST": "operator"},
    "slot_timeline": {"GET": "viewer"},
    "pool_timeline": {"GET": "viewer"},
    "session_timeline": {"GET": "viewer"},
    "slot_cancel_drain": {"GET": "operator", "POST": "operator"},
    "slot_retry": {"GET": "operator", "POST": "operator"},
    "slot_terminate": {"GET": "operator", "POST": "operator"},
    "reservation_list": {"GET": "viewer"},
    "reservation_bulk_cancel": {"POST": "operator"},
    "reservation_detail": {"GET": "viewer"},
    "reservation_cancel": {"GET": "operator", "POST": "operator"},
    "session_wait_reasons": {"GET": "viewer"},
    "session_access": {"GET": "viewer"},
    "session_capacity": {"GET": "viewer"},
    "session_pool": {"GET": "operator", "POST": "operator"},
    "controller_list": {"GET": "viewer"},
    "controller_board": {"GET": "viewer"},
    "observer_list": {"GET": "viewer"},
    "observer_board": {"GET": "viewer"},
    "observer_detail": {"GET": "viewer"},
    "run_list": {"GET": "viewer"},
    "observer_run": {"POST": "operator"},
    "fair_share": {"GET": "viewer"},
    "fair_share_weights_bar": {"POST": "admin"},
    "fair_share_weights": {"POST": "admin"},
    "fair_share_policy": {"GET": "admin", "POST": "admin"},
    "usage_check": {"POST": "operator"},
    "usage_rebuild": {"GET": "admin", "POST": "admin"},
    "usage_explorer": {"GET": "viewer"},
    "definition_review": {"GET": "viewer"},
    "definition_preview": {"GET": "viewer"},
    "definition_port_review": {"GET": "viewer"},
    "definition_apply_ports": {"POST": "admin"},
    "definition_apply": {"POST": "admin"},
    "definition_drift": {"GET": "viewer"},
    "review_snooze": {"GET": "admin", "POST": "admin"},
    "review_dismiss": {"GET": "admin", "POST": "admin"},
    "session_observation": {"GET": "viewer"},
    "session_live": {"GET": "viewer"},
    "slot_live": {"GET": "viewer"},
    "busiest_sessions": {"GET": "viewer"},
    "session_observe": {"POST": "operator"},
    "session_exclude": {"GET": "admin", "POST": "admin"},
    "session_include": {"GET": "admin", "POST": "admin"},
    "drift_list": {"GET": "viewer"},
    "drift_bulk_acknowledge": {"POST": "operator"},
    "drift_acknowledge": {"GET": "operator", "POST": "operator"},
    "drift_reopen": {"GET": "operator", "POST": "operator"},
    "evidence_list": {"GET": "viewer"},
    "evidence_bulk_exclude": {"POST": "admin"},
    "evidence_bulk_include": {"POST": "admin"},
    "favicon": {"GET": "public"},
    "healthz": {"GET": "public"},
    "readyz": {"GET": "public"},
    "metrics": {"GET": "public"},
}
API: dict[str, dict[str, str]] = {
    "api:definition-list": {"GET": "viewer", "POST": "admin"},
    "api:definition-detail": {"GET": "viewer", "PATCH": "admin", "DELETE": "admin"},
    "api:definition-import": {"POST": "admin"},
    "api:definition-set-status": {"POST": "admin"},
    "api:definition-revisions": {"GET": "viewer"},
    "api:definition-revise": {"POST": "admin"},
    "api:definition-revert": {"POST": "admin"},
    "api:session-list": {"GET": "viewer + controller", "POST": "operator"},
    "api:session-detail": {"GET": "viewer + controller"},
    "api:session-cancel": {"POST": "operator"},
    "api:session-extend": {"POST": "operator"},
    "api:session-priority": {"POST": "operator"},
    "api:session-arrive": {"POST": "operator"},
    "api:domain-list": {"GET": "viewer", "POST": "admin"},
    "api:domain-detail": {"GET": "viewer", "PATCH": "admin", "DELETE": "admin"},
    "api:project-list": {"GET": "viewer", "POST": "admin"},
    "api:project-detail": {"GET": "viewer", "PATCH": "admin", "DELETE": "admin"},
    "api:project-members": {"GET": "viewer", "POST": "admin"},
    "api:project-remove-member": {"POST": "admin"},
    "api:user-list": {"GET": "admin", "POST": "admin"},
    "api:user-detail": {"GET": "admin"},
    "api:user-role": {"POST": "admin"},
    "api:user-password-link": {"POST": "admin"},
    "api:saved-view-list": {"GET": "viewer", "POST": "viewer"},
    "api:saved-view-detail": {"GET": "viewer", "PATCH": "viewer", "DELETE": "viewer"},
    "api:saved-view-default": {"POST": "viewer"},
    "api:token-list": {"GET": "admin", "POST": "admin"},
    "api:token-detail": {"GET": "admin"},
    "api:token-rotate": {"POST": "admin"},
    "api:token-revoke": {"POST": "admin"},
    "api:job-list": {"GET": "viewer"},
    "api:job-detail": {"GET": "viewer"},
    "api:job-retry": {"POST": "operator"},
    "api:change-list": {"GET": "viewer"},
    "api:change-detail": {"GET": "viewer"},
    "api:event-type-list": {"GET": "viewer"},
    "api:event-type-detail": {"GET": "viewer"},
    "api:event-type-schema": {"GET": "viewer"},
    "api:webhook-list": {"GET": "admin", "POST": "admin"},
    "api:webhook-detail": {"GET": "admin", "PATCH": "admin", "DELETE": "admin"},
    "api:webhook-rotate": {"POST": "admin"},
    "api:webhook-test": {"POST": "admin"},
    "api:event-rule-list": {"GET": "admin", "POST": "admin"},
    "api:event-rule-detail": {"GET": "admin", "PATCH": "admin", "DELETE": "admin"},
    "api:event-rule-preview": {"GET": "admin"},
    "api:event-rule-test": {"POST": "admin"},
    "api:delivery-list": {"GET": "admin"},
    "api:delivery-detail": {"GET": "admin"},
    "api:delivery-retry": {"POST": "admin"},
    "api:inbox-list": {"GET": "viewer"},
    "api:inbox-detail": {"GET": "viewer"},
    "api:inbox-read": {"POST": "viewer"},
    "api:inbox-unread": {"POST": "viewer"},
    "api:inbox-read-all": {"POST": "viewer"},
    "api:subscription-list": {"GET": "viewer"},
    "api:subscription-detail": {"PATCH": "viewer"},
    "api:watch-list": {"GET": "viewer", "POST": "viewer"},
    "api:watch-detail": {"GET": "viewer", "DELETE": "viewer"},
    "api:internal-session-list": {"GET": "controller"},
    "api:internal-session-detail": {"GET": "controller"},
    "api:internal-session-transitions": {"POST": "controller"},
    "api:internal-session-failures": {"POST": "controller"},
    "api:internal-watch": {"GET": "controller"},
    "capacity:pool-list": {"GET": "viewer", "POST": "admin"},
    "capacity:pool-detail": {"GET": "viewer", "PATCH": "admin", "DELETE": "admin"},
    "capacity:pool-dry-run": {"POST": "operator"},
    "capacity:session-explain": {"GET": "viewer"},
    "capacity:session-access": {"GET": "viewer + controller"},
    "capacity:session-move": {"POST": "operator"},
    "capacity:decision-list": {"GET": "viewer"},
    "capacity:tick-detail": {"GET": "viewer"},
    "capacity:tick-decisions": {"GET": "viewer"},
    "capacity:slot-labels": {"POST": "operator"},
    "capacity:slot-list": {"GET": "viewer + controller"},
    "capacity:slot-detail": {"GET": "viewer + controller"},
    "capacity:slot-cordon": {"POST": "operator"},
    "capacity:slot-uncordon": {"POST": "operator"},
    "capacity:slot-drain": {"POST": "operator"},
    "capacity:slot-timeline": {"GET": "viewer"},
    "capacity:pool-timeline": {"GET": "viewer"},
    "capacity:session-timeline": {"GET": "viewer"},
    "capacity:slot-cancel-drain": {"POST": "operator"},
    "capacity:slot-retry": {"POST": "operator"},
    "capacity:slot-terminate": {"POST": "operator"},
    "capacity:reservation-list": {"GET": "viewer", "POST": "operator"},
    "capacity:reservation-detail": {"GET": "viewer"},
    "capacity:reservation-renew": {"POST": "operator"},
    "capacity:reservation-release": {"POST": "operator"},
    "capacity:reservation-cancel": {"POST": "operator"},
    "capacity:observer-list": {"GET": "viewer"},
    "capacity:observer-detail": {"GET": "viewer"},
    "capacity:observer-run": {"POST": "operator"},
    "capacity:tick-list": {"GET": "viewer"},
    "fairshare:usage-bucket-list": {"GET": "viewer"},
    "fairshare:fair-share-list": {"GET": "viewer"},
    "fairshare:fair-share-detail": {"GET": "viewer"},
    "fairshare:fair-share-weights": {"POST": "admin"},
    "fairshare:fair-share-preview": {"POST": "admin"},
    "fairshare:fair-share-policy-list": {"GET": "viewer"},
    "fairshare:fair-share-policy-detail": {"GET": "viewer", "PATCH": "admin"},
    "fairshare:fair-share-policy-preview": {"POST": "admin"},
    "capacity:internal-slot-list": {"GET": "controller"},
    "capacity:internal-slot-heartbeat": {"POST": "controller"},
    "capacity:internal-lease-hold": {"POST": "controller"},
    "capacity:internal-lease-release": {"POST": "controller"},
    "capacity:internal-boot-list": {"POST": "public"},
    "capacity:internal-slot-interruption": {"POST": "controller"},
    "observations:definition-resource-observations": {"GET": "viewer"},
    "observations:definition-preview": {"POST": "viewer"},
    "observations:definition-port-review": {"GET": "viewer"},
    "observations:definition-apply-ports": {"POST": "admin"},
    "observations:definition-apply": {"POST": "admin"},
    "observations:definition-snooze": {"POST": "admin"},
    "observations:definition-dismiss": {"POST": "admin"},
    "observations:session-resource-observations": {"GET": "viewer + controller"},
    "observations:session-observe-resources": {"GET": "viewer", "POST": "operator"},
    "observations:session-live-stats": {"GET": "viewer"},
    "observations:session-live-history": {"GET": "viewer"},
    "observations:live-stats-list": {"POST": "viewer"},
    "observations:session-exclude": {"POST": "admin"},
    "observations:session-include": {"POST": "admin"},
    "observations:drift-list": {"GET": "viewer"},
    "observations:drift-detail": {"GET": "viewer"},
    "observations:drift-acknowledge": {"POST": "operator"},
    "observations:drift-reopen": {"POST": "operator"},
    "observations:internal-prometheus-targets-list": {"GET": "admin"},
    "observations:internal-session-resource-observations": {"POST": "controller"},
    "api:schema": {"GET": "viewer"},
    "api:docs": {"GET": "viewer"},
}
TABLE = PAGES | API
# Long polls get parameters that are rejected immediately.
QUERIES = {"api:internal-watch": "?wait=x"}
# Returns 404 to everyone.
NO_CALL = "unknown_call"
# Its threads see committed rows only; tests/lcm/api/watch/test_watch_api.py tests it.
ELSEWHERE = {"api:internal-watch"}
AREAS: dict[str, list[tuple[str, str, str]]] = {}
for name, methods in TABLE.items():
    if name not in ELSEWHERE:
        area = re.split("[-_]", name)[0]
        AREAS.setdefault(area, []).extend((name, method, rule) for method, rule in methods.items())


def addresses(patterns: Any, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Return all named URLs of LCM. The admin's permissions are tested with the admin."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.namespace != "admin":
                yield from addresses(
                    pattern.url_patterns, f"{pattern.namespace}:" if pattern.namespace else prefix
                )
        else:
            yield f"{prefix}{pattern.name}", pattern


def methods_of(pattern: URLPattern) -> set[str]:
    """Return the methods of an API view, from its router; pages refuse others with 405."""
    actions = getattr(pattern.callback, "actions", None) or {"get": "get"}
    return {method.upper() for method in actions} - {"HEAD", "OPTIONS"}


def test_every_address_is_in_the_table():
    found = {name for name, _ in addresses(get_resolver().url_patterns)}
    assert found == {*TABLE, NO_CALL}


def test_every_method_of_the_api_is_in_the_table():
    found: dict[str, set[str]] = {}
    for name, pattern in addresses(get_resolver().url_patterns):
        if ":" in name:
            found.setdefault(name, set()).update(methods_of(pattern))
    assert found == {name: set(methods) for name, methods in API.items()}


def address_of(name: str, url_arguments: dict[str, dict[str, Any]]) -> str:
    if name in url_arguments["special"]:
        return reverse(name, kwargs=url_arguments["special"][name])
    short_name = name.split(":")[-1]
    patterns = {name.split(":")[-1]: pattern for name, pattern in addresses(get_resolver().url_patterns)}
    if "pk" not in str(patterns[short_name].pattern):
        return reverse(name) + QUERIES.get(name, "")
    prefix = max((each for each in url_arguments["by_prefix"] if short_name.startswith(each)), key=len)
    return reverse(name, kwargs=url_arguments["by_prefix"][prefix])


def is_allowed(role: str, rule: str) -> bool:
    if rule == "public":
        return True
    if role == "controller":
        return "controller" in rule
    if rule == "controller":
        return False
    return RANK[role] >= RANK[rule.split(" + ")[0]]


def is_admitted(response: HttpResponse) -> bool:
    to_login = response.status_code == 302 and response.headers["Location"].startswith("/login?next=")
    return response.status_code not in (401, 403) and not to_login


@pytest.mark.parametrize("area", sorted(AREAS))
def test_only_roles_in_the_table_have_access(
    area, url_arguments, stranger, viewer, operator, admin, controller
):
    people = {"stranger": stranger, "viewer": viewer, "operator": operator, "admin": admin}
    clients: dict[str, Client] = {role: APIClient() for role in CAST}
    for role, person in people.items():
        clients[role].force_login(person)
    clients["controller"].credentials(HTTP_AUTHORIZATION=f"Bearer {controller.key}")
    for name, method, rule in AREAS[area]:
        address = address_of(name, url_arguments)
        for role, client in clients.items():
            if role == "controller" and name in PAGES:
                continue
            with transaction.atomic():
                response = client.generic(method, address, "{}", content_type="application/json")
                # Roll back, because an admitted request may have changed something.
                transaction.set_rollback(True)
            assert is_admitted(response) == is_allowed(role, rule), (name, method, role)


def test_a_persons_token_has_the_persons_role(api, viewer, session):
    client = api(make_person_token(viewer))
    assert client.get("/api/lablet-sessions/").status_code == 200
    assert client.post(f"/api/lablet-sessions/{session.pk}/cancel", {"reason": "x"}).status_code == 403
    assert client.get("/api/tokens/").status_code == 403


def test_pages_reject_methods_they_do_not_have(client, admin, url_arguments):
    client.force_login(admin)
    for name, methods in PAGES.items():
        for method in {"GET", "POST", "PUT", "DELETE"} - set(methods):
            if name != "login" and name != "logout":
                response = client.generic(method, address_of(name, url_arguments))
                assert response.status_code == 405, (name, method)


def test_an_unknown_api_path_returns_the_error_format_of_the_api(client):
    for method in ("get", "post", "delete"):
        response = getattr(client, method)("/api/no/such/call")
        assert (response.status_code, response.json()["code"]) == (404, "not_found")
