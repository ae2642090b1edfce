"""The change log is append-only."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from lcm.config.logs import request_id, task_id
from lcm.domain.actors import SYSTEM, Actor
from lcm.models import ChangeLog
from lcm.services.changelog import differences, log_change, loggable_fields
from tests.support.factories import DomainFactory, make_person


@pytest.fixture
def entry(db):
    domain = DomainFactory(name="academy")
    return log_change(domain, actor=SYSTEM, event="domain.created", message="domain academy created")


ATTEMPTS = {
    "save": lambda entry: entry.save(),
    "save some fields": lambda entry: entry.save(update_fields=["message"]),
    "delete": lambda entry: entry.delete(),
    "update": lambda _: ChangeLog.objects.update(message="nothing happened"),
    "filtered update": lambda entry: ChangeLog.objects.filter(pk=entry.pk).update(message="nothing happened"),
    "delete all": lambda _: ChangeLog.objects.all().delete(),
    "bulk update": lambda entry: ChangeLog.objects.bulk_update([entry], ["message"]),
    "update or create": lambda entry: ChangeLog.objects.update_or_create(
        pk=entry.pk, defaults={"message": "x"}
    ),
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_an_entry_cannot_be_changed_or_deleted(attempt, entry):
    entry.message = "nothing happened"
    with pytest.raises(ValidationError, match="change log cannot be"), transaction.atomic():
        attempt(entry)
    assert list(ChangeLog.objects.values_list("message", flat=True)) == ["domain academy created"]


def test_a_new_entry_cannot_replace_an_old_one(entry):
    forged = ChangeLog(pk=entry.pk, actor="forger", message="nothing happened")
    with suppress(IntegrityError, ValidationError), transaction.atomic():
        forged.save()
    assert list(ChangeLog.objects.values_list("message", flat=True)) == ["domain academy created"]


def test_an_entry_outlives_its_user(entry):
    person = make_person("paul")
    log_change(DomainFactory(), actor=Actor.person(person), event="domain.created", message="made by paul")
    key = person.pk
    person.delete()
    stored = ChangeLog.objects.get(message="made by paul")
    assert (stored.actor, stored.user_id) == ("paul", key)


def test_an_entry_outlives_its_object(entry):
    DomainFactory._meta.model.objects.all().delete()
    assert ChangeLog.objects.get().object_label == "academy"


def test_an_entry_names_actor_and_object(viewer):
    domain = DomainFactory(name="academy")
    log_change(domain, actor=Actor.person(viewer), event="domain_edited", message="renamed", reason="merger")
    entry = ChangeLog.objects.get()
    assert (entry.actor, entry.user_id, entry.token_id) == ("vera", viewer.pk, None)
    assert (entry.object_type, entry.object_id, entry.object_label) == ("domain", str(domain.pk), "academy")
    assert (entry.event, entry.message, entry.reason) == ("domain_edited", "renamed", "merger")


def test_an_entry_of_a_controller_names_its_token(controller, session):
    actor = Actor.controller("controller-eu", controller.token.pk)
    log_change(session, actor=actor, event="seen", message="seen")
    entry = ChangeLog.objects.get(event="seen")
    assert (entry.actor, entry.user_id, entry.token_id) == (
        "controller controller-eu",
        None,
        controller.token.pk,
    )


def test_before_and_after_are_stored_unchanged(session, now):
    written = log_change(
        session,
        actor=SYSTEM,
        event="seen",
        message="seen",
        before={"ends_at": now, "id": session.pk, "left": timedelta(minutes=5)},
        after={"cores": session.revision.cpu_cores, "tags": ("a", "b")},
    )
    read = ChangeLog.objects.get(pk=written.pk)
    assert (read.before, read.after) == (written.before, written.after)
    assert read.before["id"] == str(session.pk)
    assert read.after == {"cores": "4.00", "tags": ["a", "b"]}


def test_an_entry_has_the_request_id(entry):
    token = request_id.set("req-12345678")
    try:
        stored = log_change(DomainFactory(), actor=SYSTEM, event="seen", message="seen")
    finally:
        request_id.reset(token)
    assert stored.request_id == "req-12345678"
    assert entry.request_id == ""


def test_an_entry_outside_of_a_request_has_the_task_id(db):
    token = task_id.set("task-1")
    try:
        stored = log_change(DomainFactory(), actor=SYSTEM, event="seen", message="seen")
    finally:
        task_id.reset(token)
    assert stored.request_id == "task-1"


def test_long_texts_are_truncated(db):
    entry = log_change(DomainFactory(), actor=SYSTEM, event="seen", message="m" * 900, reason="r" * 900)
    assert (len(entry.message), len(entry.reason)) == (500, 500)


def test_loggable_fields_exclude_secrets_and_large_values(definition, viewer, controller):
    assert "password" not in loggable_fields(viewer)
    assert "hash" not in loggable_fields(controller.token)
    assert not {"topology_yaml", "nodes", "links"} & set(loggable_fields(definition))


def test_differences_return_changed_values_before_and_after():
    before, after = {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "d": 4}
    assert differences(before, after) == ({"b": 2, "d": None}, {"b": 5, "d": 4})
