"""Every request of the OpenAPI document rejects unknown keys by name."""

from uuid import uuid4

import pytest
from drf_spectacular.generators import SchemaGenerator

from lcm.api.views.base import UNKNOWN

# This body has its own parser, which reports errors by dotted paths; test_adr_body tests it.
READ_BY_A_SERVICE = "/api/internal/lablet-sessions/{id}/resource-observations/"
TOP_LEVEL_KEY = ({"surprise": 1}, {"surprise": [UNKNOWN]})


@pytest.fixture(scope="module")
def document():
    return SchemaGenerator().get_schema(request=None, public=True)


def bodies_with_unknown_key(schema, schemas):
    """For each object in a schema: a body with an unknown key in it, and the error that names the key."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
        if schema.get("type") == "object":
            yield TOP_LEVEL_KEY
    for part in schema.get("allOf", ()):
        yield from bodies_with_unknown_key(part, schemas)
    for name, part in schema.get("properties", {}).items():
        yield from (({name: body}, {name: error}) for body, error in bodies_with_unknown_key(part, schemas))
    if "items" in schema:
        yield from (
            ([body], {"0": error}) for body, error in bodies_with_unknown_key(schema["items"], schemas)
        )


def operations_with_body(document):
    """Each operation that changes something, with bodies that it must reject."""
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method in operations.keys() - {"get"}:
            body = operations[method].get("requestBody")
            schema = body["content"]["application/json"]["schema"] if body else {}
            for invalid_body in [*bodies_with_unknown_key(schema, schemas)] if body else [TOP_LEVEL_KEY]:
                yield method, path, *invalid_body


def test_an_unknown_key_is_rejected_by_name_at_any_depth(document, api, admin, controller):
    people, controllers = api(admin), api(controller)
    accepted, bodies_tried = [], 0
    for method, path, body, error in operations_with_body(document):
        if path == READ_BY_A_SERVICE:
            continue
        client = controllers if path.startswith("/api/internal/") else people
        address = path.format(id=uuid4(), number=1, name="fair_share", event_type="session.ready")
        response = getattr(client, method)(address, body)
        bodies_tried += 1
        if (response.status_code, response.json()["details"]) != (400, error):
            accepted.append((method, path, body, response.json()))
    assert accepted == []
    assert bodies_tried > 60


def test_the_document_forbids_unknown_keys(document):
    schemas = document["components"]["schemas"]
    closed = {name for name, schema in schemas.items() if schema.get("additionalProperties") is False}
    nested = {"RequirementsRequest", "LeakedPortRequest", "ChoiceRequest"}
    assert {"RenewRequest", "ReviseRequest", "PatchedDomainRequest", *nested} <= closed
    assert not {"Session", "Requirements", "Request"} & closed
