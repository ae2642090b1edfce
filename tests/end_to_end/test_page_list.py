"""Every page is in tests/support/page_list.py, which browser tests and screenshots visit, or has a reason."""

from __future__ import annotations

import re
from uuid import UUID

from django.urls import Resolver404, resolve

from tests.lcm.web.test_permission_matrix import PAGES
from tests.support.page_list import LISTS, PANELS
from tests.support.page_list import PAGES as VISITED

# Parts of visited pages.
PART_OF = {
    "suggest": "session_create",
    "definition_preview": "definition_review",
    "search_suggestions": "search",
    "session_preview": "session_create",
}
# Forms with the same template and the same kinds of fields as a visited form.
SAME_TEMPLATE_AS = {
    "definition_status": "person_role",
    "definition_delete": "session_cancel",
    "domain_create": "project_create",
    "view_create": "person_role",
    "view_edit": "person_role",
    "view_delete": "session_cancel",
    "domain_edit": "project_create",
    "domain_delete": "session_cancel",
    "project_edit": "project_create",
    "project_delete": "session_cancel",
    "member_remove": "session_cancel",
    "token_revoke": "token_rotate",
    "pool_delete": "session_cancel",
    "slot_cordon": "slot_drain",
    "slot_uncordon": "slot_drain",
    "slot_cancel_drain": "slot_drain",
    "slot_retry": "slot_drain",
    "slot_terminate": "slot_drain",
    "reservation_cancel": "session_cancel",
    "review_dismiss": "review_snooze",
    "session_pool": "person_role",
    "session_exclude": "session_cancel",
    "session_include": "session_cancel",
    "drift_reopen": "drift_acknowledge",
    "usage_rebuild": "session_cancel",
    "person_password_link": "session_cancel",
    "rule_edit": "rule_create",
    "rule_delete": "session_cancel",
    "webhook_delete": "session_cancel",
}
NOT_A_PAGE = {
    "set_password": "checked with a link, in tests/end_to_end/browser/test_people.py",
    "unsubscribe": "checked with a link, in tests/lcm/services/test_mail_delivery.py",
    "inbox_open": "redirects to the page of the object",
    "login": "checked before logging in, in tests/end_to_end/browser/test_everywhere.py",
    "help": "documentation; tests/docs checks it",
    "favicon": "an image",
    "healthz": "for machines",
    "readyz": "for machines",
    "metrics": "for machines",
}


def name_of(path: str) -> str:
    """Return the name of a URL whose ids are placeholders."""
    plain = path.partition("?")[0]
    for key in (str(UUID(int=1)), "1"):
        try:
            return str(resolve(re.sub(r"{\w+}", key, plain)).url_name)
        except Resolver404:
            continue
    raise AssertionError(f"{path} is not a URL of LCM")


def test_every_page_is_visited_or_has_a_reason_not_to_be():
    pages = {name for name, methods in PAGES.items() if "GET" in methods}
    visited = {name_of(path) for path in [*VISITED, *PANELS]}
    exempt = [*PART_OF, *SAME_TEMPLATE_AS, *NOT_A_PAGE]
    assert sorted([*visited, *exempt]) == sorted(pages)


def test_the_page_that_represents_another_is_visited():
    visited = {name_of(path) for path in VISITED}
    assert {*PART_OF.values(), *SAME_TEMPLATE_AS.values()} <= visited


def test_every_id_in_the_urls_is_resolved():
    assert {key for path in VISITED for key in re.findall(r"{(\w+)}", path)} == set(LISTS)
