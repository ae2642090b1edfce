"""Paging, sorting and filtering, the same in every list."""

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from lcm.domain.lifecycle import SessionStatus
from tests.support.factories import DomainFactory, make_definition, make_person, make_project, make_session

S = SessionStatus
SESSIONS = "/api/lablet-sessions/"
DOMAINS = "/api/domains/"
LISTS = [
    "/api/lablet-definitions/",
    SESSIONS,
    DOMAINS,
    "/api/projects/",
    "/api/users/",
    "/api/tokens/",
    "/api/changes/",
]


@pytest.fixture
def seven_domains(db):
    DomainFactory.reset_sequence(0)
    return [domain.name for domain in DomainFactory.create_batch(7)]


def names(response):
    assert response.status_code == 200, response.json()
    return [row["name"] for row in response.json()["results"]]


def ids(client, **filters):
    response = client.get(SESSIONS, filters)
    assert response.status_code == 200, response.json()
    return {row["id"] for row in response.json()["results"]}


def follow(client, link):
    parts = urlsplit(link)
    return client.get(f"{parts.path}?{parts.query}")


def test_pages_link_to_the_next_and_previous_page(api, viewer, seven_domains):
    client = api(viewer)
    first = client.get(DOMAINS, {"page_size": 3})
    second = follow(client, first.json()["next"])
    third = follow(client, second.json()["next"])
    assert names(first) + names(second) + names(third) == seven_domains
    assert first.json()["previous"] is None
    assert third.json()["next"] is None
    assert names(follow(client, third.json()["previous"])) == names(second)
    assert names(follow(client, second.json()["previous"])) == names(first)


def test_a_link_keeps_filters_sort_and_size(api, viewer, seven_domains):
    link = api(viewer).get(DOMAINS, {"page_size": 2, "sort": "-name", "q": "domain"}).json()["next"]
    query = parse_qs(urlsplit(link).query)
    assert (query["page_size"], query["sort"], query["q"]) == (["2"], ["-name"], ["domain"])


def test_a_page_has_fifty_rows_by_default(api, viewer, db):
    DomainFactory.create_batch(51)
    response = api(viewer).get(DOMAINS)
    assert len(names(response)) == 50
    assert response.json()["next"]


@pytest.mark.parametrize("size", ["0", "-1", "501", "ten", "1.5", "²", "9" * 5000])
@pytest.mark.parametrize("path", [DOMAINS])
def test_an_invalid_page_size_is_rejected(size, path, api, viewer):
    response = api(viewer, raise_request_exception=False).get(path, {"page_size": size})
    assert response.status_code == 400
    assert response.json()["details"] == {"page_size": ["Must be between 1 and 500."]}


@pytest.mark.parametrize("size", ["1", "500", ""])
def test_a_valid_page_size_is_used(size, api, viewer):
    assert api(viewer).get(DOMAINS, {"page_size": size}).status_code == 200


def test_a_list_is_sorted_both_ways(api, viewer, seven_domains):
    client = api(viewer)
    assert names(client.get(DOMAINS, {"sort": "name"})) == seven_domains
    assert names(client.get(DOMAINS, {"sort": "-name"})) == seven_domains[::-1]


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("sort", ["colour", "--name", "password", "name,id", "?"])
def test_an_unknown_sort_is_rejected(path, sort, api, admin):
    response = api(admin).get(path, {"sort": sort})
    assert response.status_code == 400
    assert list(response.json()["details"]) == ["sort"]


@pytest.mark.parametrize("path", LISTS)
def test_an_unknown_filter_is_rejected(path, api, admin):
    response = api(admin).get(path, {"colour": "red"})
    assert response.status_code == 400
    assert response.json()["details"] == {"colour": ["Unknown filter."]}


@pytest.mark.parametrize("path", LISTS)
def test_an_invalid_cursor_is_rejected_in_every_list(path, api, admin):
    response = api(admin).get(path, {"cursor": "nonsense"})
    assert response.status_code == 400
    assert list(response.json()["details"]) == ["cursor"]


@pytest.mark.parametrize(
    ("path", "sorts"),
    [
        ("/api/lablet-definitions/", ["name", "created_at", "updated_at", "node_count", "status"]),
        (SESSIONS, ["created_at", "starts_at", "ends_at", "status", "priority"]),
        (DOMAINS, ["name", "created_at"]),
        ("/api/projects/", ["name", "created_at"]),
        ("/api/users/", ["username", "date_joined"]),
        ("/api/tokens/", ["created_at", "name", "expires_at"]),
        ("/api/changes/", ["at"]),
    ],
)
def test_every_sort_pages_through_all_rows_once(path, sorts, api, admin, session_in, controller):
    for _ in range(3):
        session_in(S.PENDING)
        make_definition()
        make_project("academy", f"p-{_}")
    client = api(admin)
    for sort in [*sorts, *(f"-{each}" for each in sorts)]:
        seen, response = [], client.get(path, {"sort": sort, "page_size": 2})
        while len(seen) < 100:
            assert response.status_code == 200, response.json()
            seen += [row["id"] for row in response.json()["results"]]
            if not response.json()["next"]:
                break
            response = follow(client, response.json()["next"])
        all_rows = client.get(path, {"sort": sort, "page_size": 500}).json()["results"]
        assert seen == [row["id"] for row in all_rows]
        assert len(set(seen)) == len(seen)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "LOST"),
        ("priority", "urgent"),
        ("priority", "51"),
        ("domain", "atlantis"),
        ("project", "nonsense"),
        ("definition", "12"),
        ("owner", "vera"),
        ("created", "a while"),
        ("starts_after", "soon"),
        ("starts_after", "0001-01-01T00:00:00+14:00"),
        ("starts_before", "9999-12-31T23:59:59-14:00"),
        ("q", "x" * 101),
        ("pool", "a\x00b"),
    ],
)
def test_an_invalid_filter_value_is_rejected(name, value, api, viewer):
    response = api(viewer, raise_request_exception=False).get(SESSIONS, {name: value})
    assert response.status_code == 400
    assert list(response.json()["details"]) == [name]


def test_several_statuses_match_any_of_them(api, viewer, session_in):
    rows = {status: str(session_in(status).pk) for status in (S.PENDING, S.READY, S.FAILED)}
    client = api(viewer)
    assert ids(client, status="PENDING") == {rows[S.PENDING]}
    assert ids(client, status=["PENDING", "FAILED"]) == {rows[S.PENDING], rows[S.FAILED]}
    assert ids(client, active="true") == {rows[S.PENDING], rows[S.READY]}
    assert ids(client, active="false") == {rows[S.FAILED]}


def test_sessions_are_filtered_by_related_objects(api, viewer, operator, session, now):
    paul = make_person("paul")
    project = make_project("university", "physics", paul)
    definition = make_definition("quantum", pool="cml-us")
    starts = now + timedelta(days=3)
    timeslot = {"starts_at": starts, "ends_at": starts + timedelta(hours=1)}
    other = make_session(definition, project, paul, priority=90, **timeslot)
    client, only_other = api(viewer), {str(other.pk)}
    assert ids(client) == {str(session.pk), str(other.pk)}
    for filters in (
        {"definition": definition.pk},
        {"project": project.pk},
        {"owner": paul.pk},
        {"domain": "university"},
        {"pool": "cml-us"},
        {"priority": 90},
        {"starts_after": (now + timedelta(days=1)).isoformat()},
        {"q": "quantum"},
        {"q": "PAUL"},
        {"q": "physics"},
        {"q": "univers"},
        {"q": other.pk.hex[:8]},
        {"q": str(other.pk)},
    ):
        assert ids(client, **filters) == only_other, filters
    assert ids(client, starts_before=(now + timedelta(days=1)).isoformat()) == {str(session.pk)}
    assert ids(client, q="nothing-like-it") == set()
    assert ids(client, q="%") == set()


def test_the_domain_filter_accepts_every_domain(api, viewer, session):
    DomainFactory.create_batch(120)
    make_project("zoo", "lions")
    assert api(viewer).get(SESSIONS, {"domain": "zoo"}).status_code == 200


def test_sessions_are_filtered_by_the_last_hour(api, viewer, session_in, now):
    new = session_in(S.PENDING)
    session_in(S.PENDING, now=now - timedelta(hours=2))
    assert ids(api(viewer), created="1h") == {str(new.pk)}
    assert len(ids(api(viewer), created="24h")) == 2
    middle = (now - timedelta(hours=1)).isoformat()
    assert ids(api(viewer), created_from=middle) == {str(new.pk)}
    assert str(new.pk) not in ids(api(viewer), created_to=middle)
