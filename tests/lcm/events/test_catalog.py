"""The catalogue of events: schemas, examples, and events that the change log records."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from cloudevents.core.formats.json import JSONFormat
from jsonschema import Draft202012Validator

from lcm.domain.actors import SYSTEM
from lcm.events.catalog import cloud_event, event_types, events_data, example_event, matching_types
from lcm.models import ChangeLog
from lcm.services.changelog import log_change
from lcm.services.sessions import cancel_session, extend_session
from lcm.services.tokens import create_token


@pytest.mark.parametrize("name", event_types())
def test_the_example_of_a_type_is_a_cloud_event_that_fits_its_schema(name):
    kind = event_types()[name]
    example = example_event(kind)
    Draft202012Validator.check_schema(kind.schema)
    Draft202012Validator(kind.schema).validate(example["data"])
    read = JSONFormat().read(None, json.dumps(example))
    assert read.get_type() == f"org.lcm.{name}"
    assert read.get_dataschema() == kind.schema_url


def test_a_pattern_matches_the_types_of_a_subject():
    assert matching_types(["session.re*", "pool.stopped"]) == [
        "session.requested", "session.ready", "session.requeued", "pool.stopped",
    ]  # fmt: skip
    assert matching_types(["session.nothing", ""]) == []


def test_a_change_in_the_catalogue_is_an_event_and_others_are_not(session, as_admin, now):
    end = session.ends_at + timedelta(minutes=10)
    extend_session(session=session, ends_at=end, actor=as_admin, now=now, reason="more time")
    cancel_session(session=session, actor=as_admin, now=now, reason="too late")
    changes = ChangeLog.objects.filter(object_id=str(session.pk)).order_by("pk")
    assert [(change.event, change.routed) for change in changes] == [
        ("session.requested", False),
        ("session.extended", False),
        ("session.cancelled", False),
    ]
    change = log_change(session, actor=as_admin, event="session.user_arrived", message="arrived", now=now)
    assert change.routed is None


def test_the_data_of_many_events_is_read_with_one_query_for_each_kind_of_object(
    session, admin, now, django_assert_num_queries
):
    create_token(
        name="ci", kind="person", user=admin, expires_at=now + timedelta(days=1), actor=SYSTEM, now=now
    )
    changes = list(ChangeLog.objects.filter(event__in=("session.requested", "token.created")).order_by("pk"))
    with django_assert_num_queries(2):
        data = {change.event: each for change, each in zip(changes, events_data(changes), strict=True)}
    found = data["session.requested"]
    assert (found.definition, found.owner, found.project) == (
        str(session.definition), session.owner.username, session.project.path,
    )  # fmt: skip
    assert found.url.endswith(f"/sessions/{session.pk}/")
    for change, each in zip(changes, events_data(changes), strict=True):
        event = cloud_event(change, each)
        Draft202012Validator(event_types()[change.event].schema).validate(event["data"])
        assert (event["id"], event["type"]) == (str(change.pk), f"org.lcm.{change.event}")


def test_an_event_of_a_deleted_object_keeps_its_name(session):
    change = ChangeLog.objects.get(object_id=str(session.pk), event="session.requested")
    type(session).objects.filter(pk=session.pk).delete()
    (data,) = events_data([change])
    assert (data.name, data.url, data.definition) == (f"session {session.short_id}", None, None)


def test_the_api_lists_the_types_with_schema_and_example(api, viewer):
    client = api(viewer)
    rows = client.get("/api/event-types/").json()["results"]
    assert [row["name"] for row in rows] == list(event_types())
    one = client.get("/api/event-types/session.ready/").json()
    assert one["example"]["data"]["after"] == {"status": "READY"}
    assert client.get("/api/event-types/session.ready/schema/").json()["title"] == "session.ready"
    assert client.get("/api/event-types/session.unknown/").status_code == 404
