"""Text that the database cannot store is rejected with its path, by API, pages and filters."""

from __future__ import annotations

import pytest

from lcm.domain.storable_text import find_unstorable, remove_unstorable

NUL, LONE_SURROGATE = "\x00", "\ud800"


@pytest.mark.parametrize(
    ("value", "location"),
    [
        ("fine é😀\n", None),
        (f"a{NUL}", ""),
        (LONE_SURROGATE, ""),
        ({"a": 1, "b": [None, True, 2.5, "x"]}, None),
        ({"a": NUL}, "a"),
        ({"a": {"b": [{"c": LONE_SURROGATE}]}}, "a.b[0].c"),
        ([["x", NUL]], "[0][1]"),
        (("x", NUL), "[1]"),
        ({"a": {f"k{NUL}": 1}}, "a"),
        ({f"k{NUL}": 1}, ""),
        (7, None),
        (b"\x00", None),
    ],
)
def test_the_path_of_unstorable_text_is_found(value, location):
    assert find_unstorable(value) == location


def test_unstorable_characters_are_replaced():
    assert remove_unstorable(f"a{NUL}b{LONE_SURROGATE}é") == "a\ufffdb\ufffdé"


POOLS, RESERVATIONS = "/api/pools/", "/api/reservations/"
REQUESTS = [
    (POOLS, '{"name": "new", "runtime_settings": {"spot": "\\u0000"}}', "runtime_settings.spot"),
    (POOLS, '{"name": "new", "runtime_settings": {"a\\u0000": 1}}', "runtime_settings"),
    (POOLS, '{"name": "n\\u0000"}', "name"),
    (POOLS, '{"name": "new", "description": "\\ud800"}', "description"),
    (POOLS, '{"na\\u0000me": "new"}', "__all__"),
    (POOLS, '["\\u0000"]', "[0]"),
    (RESERVATIONS, '{"pool": "cml-eu", "holder": "\\u0000", "resources": {"cpu_cores": 1}}', "holder"),
    (RESERVATIONS, '{"pool": "\\u0000", "resources": {"cpu_cores": 1}}', "pool"),
]


@pytest.mark.parametrize(("path", "body", "location"), REQUESTS, ids=[row[1] for row in REQUESTS])
def test_the_api_rejects_unstorable_text_with_its_path(api, admin, path, body, location):
    response = api(admin).post(path, body, content_type="application/json")
    assert (response.status_code, response.json()["code"]) == (400, "invalid")
    assert "cannot be stored" in " ".join(response.json()["details"][location])


@pytest.mark.parametrize("path", ["pools/?q=a%00b", "slots/?pool=%00", "reservations/?holder=%00"])
def test_a_filter_with_unstorable_text_is_rejected_or_finds_nothing(api, admin, path):
    assert api(admin).get(f"/api/{path}").status_code in (200, 400)


@pytest.mark.parametrize("escaped", ["\\u0000", "\\ud800"])
def test_a_page_shows_the_error_at_the_field_and_keeps_the_input(client, admin, escaped):
    from tests.scheduling.pages.capacity.test_pool_forms import VALID_FORM

    client.force_login(admin)
    page = client.post("/pools/new", {**VALID_FORM, "runtime_settings": f'{{"spot": "{escaped}"}}'})
    assert page.status_code == 422
    assert "cannot be stored" in page.content.decode()
    assert escaped in page.content.decode()
