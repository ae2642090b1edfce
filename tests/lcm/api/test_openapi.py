"""The OpenAPI document is free of warnings and covers every URL."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import call_command
from django.test import RequestFactory
from django.urls import URLPattern, get_resolver
from drf_spectacular.generators import SchemaGenerator

from lcm.api.views.schema import SchemaView

UNDOCUMENTED = {"/api/schema", "/api/docs"}


@pytest.fixture(scope="module")
def document():
    return SchemaGenerator().get_schema(request=None, public=True)


def addresses(patterns, prefix):
    for each in patterns:
        route = prefix + str(each.pattern)
        if isinstance(each, URLPattern):
            if each.name != "unknown_call":
                yield route
        else:
            yield from addresses(each.url_patterns, route)


def shape(route):
    """Return a URL with its variable parts as `{}`, from Django's regular expression or from OpenAPI."""
    route = re.sub(r"\(\?P<\w+>[^()]*\)|<[^>]*>|\{\w+\}", "{}", route)
    return re.sub(r"/\?$", "/", re.sub(r"[\^$]|\\Z", "", route))


def test_the_document_has_no_warnings():
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", os.devnull)


def test_every_url_of_the_api_is_in_the_document(document):
    routes = {shape(route) for route in addresses(get_resolver().url_patterns, "/")}
    api_routes = {route for route in routes if route.startswith("/api/")} - UNDOCUMENTED
    assert len(api_routes) > 20
    assert api_routes == {shape(path) for path in document["paths"]}


def test_every_path_ends_with_a_slash(document):
    assert [path for path in document["paths"] if not path.endswith("/")] == []


def test_every_operation_has_a_unique_name_and_the_error_format(document):
    operations = [each for path in document["paths"].values() for each in path.values()]
    names = [each["operationId"] for each in operations]
    assert len(set(names)) == len(names)
    for each in operations:
        assert {"400", "401", "403", "404"} <= set(each["responses"])
        schema = each["responses"]["403"]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/Error"}


def test_every_post_takes_an_idempotency_key_and_nothing_else_does(document):
    for path in document["paths"].values():
        for method, each in path.items():
            headers = {part["name"] for part in each.get("parameters", []) if part["in"] == "header"}
            assert headers == ({"Idempotency-Key"} if method == "post" else set())


def test_filters_and_paging_of_a_list_are_documented(document):
    parts = document["paths"]["/api/lablet-sessions/"]["get"]["parameters"]
    names = {part["name"] for part in parts}
    assert {"cursor", "page_size", "sort", "status", "owner", "pool", "q"} <= names


@pytest.mark.parametrize(
    ("path", "name", "schema"),
    [
        (
            "/api/lablet-sessions/",
            "created",
            {"type": "string", "enum": ["1h", "24h", "30d", "7d", "today", "yesterday"]},
        ),
        ("/api/lablet-sessions/", "drift", {"type": "boolean"}),
        ("/api/slots/", "is_spot", {"type": "boolean"}),
        ("/api/domains/", "sort", {"type": "string", "enum": ["name", "created_at", "-name", "-created_at"]}),
    ],
)
def test_a_filter_is_documented_with_its_type(path, name, schema, document):
    found = {part["name"]: part for part in document["paths"][path]["get"]["parameters"]}
    assert found[name]["schema"] == schema
    assert found[name]["allowEmptyValue"]


def test_an_empty_reason_is_not_allowed(document):
    reason = document["paths"]["/api/domains/{id}/"]["delete"]["parameters"][-1]
    assert (reason["name"], reason["required"], reason["schema"]["minLength"]) == ("reason", True, 1)
    cancel = document["components"]["schemas"]["ReasonRequest"]
    assert (cancel["required"], cancel["properties"]["reason"]["minLength"]) == (["reason"], 1)


def test_every_list_has_the_same_format(document):
    """The service discovery list of Prometheus is a bare array."""
    bare = [
        path
        for path, methods in document["paths"].items()
        for content in methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {}).values()
        if content["schema"].get("type") == "array"
    ]
    assert bare == ["/api/internal/prometheus-targets/"]


def test_explain_may_return_409(document):
    assert "409" in document["paths"]["/api/lablet-sessions/{id}/explain/"]["get"]["responses"]


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        (
            "/api/internal/leases/hold/",
            {"type": "array", "items": {"$ref": "#/components/schemas/PoolLease"}},
        ),
        ("/api/internal/boot/", {"$ref": "#/components/schemas/BootKey"}),
        ("/api/live-stats/", {"$ref": "#/components/schemas/BatchLive"}),
    ],
)
def test_a_post_that_creates_nothing_returns_200(path, schema, document):
    responses = document["paths"][path]["post"]["responses"]
    assert [code for code in responses if code.startswith("2")] == ["200"]
    assert responses["200"]["content"]["application/json"]["schema"] == schema


def test_both_authentication_schemes_are_documented(document):
    assert set(document["components"]["securitySchemes"]) == {"token", "login"}


@pytest.mark.parametrize(
    ("role", "schema", "docs"), [("viewer", 200, 200), ("stranger", 403, 403), (None, 401, 302)]
)
def test_the_document_is_for_people_with_a_role(role, schema, docs, api, db, request):
    caller = request.getfixturevalue(role) if role else None
    assert api(caller).get("/api/schema").status_code == schema
    assert api(caller).get("/api/docs").status_code == docs


def test_concurrent_threads_generate_the_document_independently():
    view = SchemaView.as_view(authentication_classes=[], permission_classes=[], throttle_classes=[])
    request = RequestFactory().get("/api/schema?format=json")
    with ThreadPoolExecutor(4) as threads:
        documents = list(threads.map(lambda _: view(request).data, range(4)))
    assert all(document["paths"].keys() == documents[0]["paths"].keys() for document in documents)


def test_the_docs_load_nothing_from_other_hosts(api, viewer):
    page = api(viewer).get("/api/docs").content.decode()
    assert "swagger-ui" in page
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
