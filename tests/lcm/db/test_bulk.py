"""Bulk inserts and updates store the same rows as single ones and respect constraints."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from lcm.db.bulk import CHUNK, insert_rows, update_rows
from lcm.models import ChangeLog, Domain, SessionTransition
from tests.support.factories import make_session

pytestmark = pytest.mark.django_db
SPECIAL_CHARACTERS = "tab\there, line\nthere, back\\slash, “quotes” and 'more' \\N é 漢"


def transition_values(session, **changes):
    values = {
        "id": uuid4(),
        "session": session.pk,
        "from_status": "",
        "to_status": "PENDING",
        "at": session.created_at,
        "actor": "someone",
        "reason": "",
        "attempt": 1,
    }
    return {**values, **changes}


def insert(rows):
    insert_rows(SessionTransition, list(rows[0]), [tuple(row.values()) for row in rows])


@pytest.mark.parametrize("text", ["", "plain", SPECIAL_CHARACTERS])
def test_text_is_stored_unchanged(session, text):
    row = transition_values(session, reason=text)
    insert([row])
    assert SessionTransition.objects.get(pk=row["id"]).reason == text


@pytest.mark.parametrize("as_text", [str, lambda key: key.hex])
def test_ids_may_be_text(session, as_text):
    row = transition_values(session)
    insert([{**row, "id": as_text(row["id"]), "session": as_text(session.pk)}])
    assert SessionTransition.objects.get(pk=row["id"]).session == session


@pytest.mark.parametrize("value", [None, {}, [], {"a": [1, 2.5, SPECIAL_CHARACTERS, None, True]}])
def test_json_is_stored_unchanged_and_none_becomes_null(now, value):
    fields = [
        "at",
        "actor",
        "request_id",
        "object_type",
        "object_id",
        "object_label",
        "event",
        "message",
        "reason",
    ]
    texts = ["someone", "", "session", "1", "session 1", "made", "made", ""]
    insert_rows(ChangeLog, [*fields, "after", "before"], [(now, *texts, value, None)])
    entry = ChangeLog.objects.get(object_id="1", event="made")
    assert (entry.after, entry.before) == (value, None)
    assert ChangeLog.objects.filter(before__isnull=True, after__isnull=value is None).exists()


def test_no_rows_is_a_no_op(session):
    insert_rows(SessionTransition, ["id"], [])
    update_rows(SessionTransition, ["reason"], [])


def test_a_constraint_violation_inserts_no_row(session):
    duplicate = transition_values(session)
    before = SessionTransition.objects.count()
    with pytest.raises(IntegrityError), transaction.atomic():
        insert([transition_values(session), duplicate, duplicate])
    assert SessionTransition.objects.count() == before


def test_each_row_gets_its_own_values(session):
    rows = [transition_values(session) for _ in range(5)]
    insert(rows)
    update_rows(
        SessionTransition,
        ["reason", "attempt"],
        [(row["id"], f"reason {number}", number + 1) for number, row in enumerate(rows)],
    )
    for number, row in enumerate(rows):
        found = SessionTransition.objects.get(pk=row["id"])
        assert (found.reason, found.attempt) == (f"reason {number}", number + 1)


def test_an_update_sets_shared_values_in_all_rows(session):
    rows = [transition_values(session) for _ in range(3)]
    insert(rows)
    updates = [(row["id"], number + 7) for number, row in enumerate(rows[:2])]
    update_rows(SessionTransition, ["attempt"], updates, same={"reason": "moved", "actor": "tick"})
    found = [SessionTransition.objects.get(pk=row["id"]) for row in rows]
    assert [(row.attempt, row.reason, row.actor) for row in found[:2]] == [
        (7, "moved", "tick"),
        (8, "moved", "tick"),
    ]
    assert found[2].reason != "moved"


def test_an_insert_sets_shared_values_in_all_rows(session, now):
    keys = [uuid4() for _ in range(3)]
    shared = {"from_status": "", "to_status": "PENDING", "at": now, "actor": SPECIAL_CHARACTERS, "reason": ""}
    rows = [(key, session.pk, number) for number, key in enumerate(keys, 1)]
    insert_rows(SessionTransition, ["id", "session", "attempt"], rows, same=shared)
    found = {row.pk: row for row in SessionTransition.objects.filter(pk__in=keys)}
    assert [found[key].attempt for key in keys] == [1, 2, 3]
    assert {(row.actor, row.at, row.reason) for row in found.values()} == {(SPECIAL_CHARACTERS, now, "")}


@pytest.mark.parametrize("value", [None, {}, {"a": [SPECIAL_CHARACTERS]}])
def test_a_shared_value_may_be_json_or_none(now, value):
    texts = {"actor": "a", "object_type": "session", "event": "made", "message": "m", "object_label": "s"}
    same = {"at": now, "request_id": "", "reason": "", "after": value, "before": None, **texts}
    insert_rows(ChangeLog, ["object_id"], [("1",), ("2",)], same=same)
    assert [row.after for row in ChangeLog.objects.filter(event="made")] == [value, value]


def test_updates_of_unknown_rows_change_nothing(session):
    update_rows(SessionTransition, ["reason"], [(uuid4(), "unknown row")])
    assert not SessionTransition.objects.filter(reason="unknown row").exists()


@pytest.mark.slow
def test_more_rows_than_a_chunk_are_written(now):
    insert_rows(
        Domain,
        ["id", "name", "description", "created_at", "updated_at"],
        ((uuid4(), f"domain-{number}", "", now, now) for number in range(CHUNK + 3)),
    )
    assert Domain.objects.count() == CHUNK + 3
    keys = Domain.objects.values_list("pk", flat=True)
    update_rows(Domain, ["description"], [(key, "seen") for key in keys])
    assert Domain.objects.filter(description="seen").count() == CHUNK + 3


def test_among_works_like_in(session, definition, viewer, project, now):
    other = make_session(session.definition, owner=session.owner, project=session.project, now=now)
    objects = type(session).objects
    assert list(objects.filter(pk__among=[session.pk])) == [session]
    assert set(objects.filter(pk__among={session.pk, other.pk, uuid4()})) == {session, other}
    assert list(objects.filter(pk__among=[])) == []
    steps = SessionTransition.objects.filter(session_id__among=[other.pk])
    assert {step.session_id for step in steps} == {other.pk}
