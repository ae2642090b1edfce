"""Database constraints reject invalid rows."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.apps import apps
from django.db import IntegrityError, transaction
from django.db.models import CheckConstraint, ProtectedError, UniqueConstraint

from lcm.models import ApiToken, Delivery, FeedEntry, FeedHead, IdempotentResponse, Job, SavedView, Watch
from tests.support.factories import (
    make_controller,
    make_definition,
    make_delivery,
    make_person_token,
    make_project,
)

# model, invalid change of a row, constraint that rejects it
CHANGES = [
    ("user", {"theme": "pink"}, "user_theme_known"),
    ("labletdefinition", {"status": "secret"}, "definition_status_known"),
    ("labletdefinition", {"placement": "anywhere"}, "definition_placement_known"),
    ("labletdefinition", {"node_count": 0}, "definition_has_nodes"),
    ("labletdefinition", {"max_duration": timedelta(0)}, "definition_max_duration_positive"),
    ("definitionrevision", {"cpu_cores": Decimal(-1)}, "revision_amounts_in_range"),
    ("definitionrevision", {"memory_gb": Decimal(-1)}, "revision_amounts_in_range"),
    ("definitionrevision", {"storage_gb": Decimal(-1)}, "revision_amounts_in_range"),
    ("definitionrevision", {"gpu": Decimal(-1)}, "revision_amounts_in_range"),
    ("definitionrevision", {"number": 0}, "revision_number_positive"),
    ("definitionrevision", {"basis": "guess"}, "revision_basis_known"),
    ("definitionrevision", {"outcome": "great"}, "revision_outcome_known"),
    ("definitionrevision", {"reverts": "itself"}, "revision_reverts_an_older_one"),
    ("labletsession", {"ends_at": "starts_at"}, "session_ends_after_start"),
    ("labletsession", {"priority": 51}, "session_priority_in_range"),
    ("labletsession", {"status": "LOST"}, "session_status_known"),
    ("labletsession", {"attempt": 0}, "session_attempt_positive"),
    ("kernel", {"cpu_cores": Decimal(-1)}, "kernel_amounts_in_range"),
    ("kernel", {"gpu": Decimal(-1)}, "kernel_amounts_in_range"),
    ("kernel", {"status": "LOST"}, "kernel_status_known"),
    ("kernel", {"terminated_at": "a minute before started_at"}, "kernel_terminates_after_start"),
    ("feedentry", {"kind": "gossip"}, "feed_kind_known"),
    ("feedhead", {"id": 2}, "feed_head_once"),
    ("feedhead", {"pruned_revision": 1}, "feed_pruned_up_to_revision"),
    ("job", {"state": "lost"}, "job_state_known"),
    ("job", {"state": "done"}, "job_finished_in_the_end"),
    ("webhook", {"format": "telegram"}, "webhook_format_known"),
    ("eventrule", {"channel": "fax"}, "rule_channel_known"),
    ("eventrule", {"webhook": None}, "rule_webhook_of_channel"),
    ("delivery", {"cause": "chance"}, "delivery_cause_known"),
    ("delivery", {"channel": "email"}, "delivery_target_of_channel"),
    ("delivery", {"read_at": datetime(2026, 3, 2, tzinfo=UTC)}, "delivery_read_in_inbox"),
    ("delivery", {"state": "lost"}, "delivery_state_known"),
    ("delivery", {"state": "pending"}, "delivery_pending_has_next_attempt"),
    ("apitoken", {"kind": "person"}, "token_belongs_to_someone"),
    ("apitoken", {"kind": "robot"}, "token_belongs_to_someone"),
]
# model, unique constraint, fields that a second row must not share
DUPLICATES = [
    ("feedentry", "feed_revision_once", ["revision"]),
    ("domain", "domain_name", ["name"]),
    ("project", "project_name_in_domain", ["domain", "name"]),
    ("membership", "membership_once", ["project", "user"]),
    ("labletdefinition", "definition_name_version", ["name", "version"]),
    ("definitionrevision", "revision_number_in_definition", ["definition", "number"]),
    ("kernel", "kernel_of_node", ["session", "node_label"]),
    ("apitoken", "token_name_in_use_once", ["name"]),
    ("apitoken", "hash", ["hash"]),
    ("idempotentresponse", "idempotency_key_once", ["principal", "key"]),
    ("delivery", "delivery_once_for_each_rule", ["event", "rule"]),
    ("delivery:email", "delivery_once_for_each_address", ["event", "address"]),
    ("delivery:inbox", "delivery_once_for_each_inbox", ["event", "recipient"]),
    ("watch", "watch_once", ["user", "object_type", "object_id"]),
    ("savedview", "saved_view_name_of_owner", ["owner", "list_name", "name"]),
]
# Column constraints that are not in Meta.constraints.
COLUMNS = {"domain_name", "hash"}


@pytest.fixture
def row_of(session, controller, now):
    """`row_of(model)`: return an existing row of a model."""
    IdempotentResponse.objects.create(principal="me", key="k", fingerprint="f")
    FeedEntry.objects.create(kind="session", object_id=session.pk, pool="cml-eu", at=now, revision=1)
    FeedHead.objects.create()
    Job.objects.create(kind="bulk", title="Cancel 2 sessions", actor="otto")
    make_delivery(now, event=7)
    same = {"event": 7, "type": "slot.ready", "retry_until": now, "state": "delivered"}
    Delivery.objects.create(channel="email", address="ops@example.org", **same)
    Delivery.objects.create(channel="inbox", recipient=session.owner, **same)
    Watch.objects.create(user=session.owner, object_type="slot", object_id="1", object_label="slot")
    SavedView.objects.create(list_name="sessions", name="mine", owner=session.owner)

    def find(model):
        name, _, channel = model.partition(":")
        rows = apps.get_model("lcm", name).objects
        return rows.filter(channel=channel or "webhook").first() if name == "delivery" else rows.first()

    return find


def constraints_of(kind):
    models = apps.get_app_config("lcm").get_models()
    return {each.name for model in models for each in model._meta.constraints if isinstance(each, kind)}


def value_for(row, value):
    match value:
        case "itself":
            return row
        case "starts_at":
            return row.starts_at
        case "a minute before started_at":
            row.started_at = row.session.starts_at
            return row.started_at - timedelta(minutes=1)
    return value


@pytest.mark.parametrize(("model", "change", "constraint"), CHANGES)
def test_a_check_constraint_rejects_an_invalid_value(model, change, constraint, row_of):
    row = row_of(model)
    for field, value in change.items():
        setattr(row, field, value_for(row, value))
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        row.save()


@pytest.mark.parametrize(("model", "constraint", "fields"), DUPLICATES)
def test_a_duplicate_is_rejected(model, constraint, fields, row_of):
    duplicate, shared = row_of(model), {}
    for field in fields:
        shared[field] = getattr(duplicate, field)
    if model == "apitoken":
        duplicate.hash, duplicate.name = "0" * 64, "another"
    duplicate.pk = type(duplicate)._meta.pk.get_default()
    duplicate._state.adding = True
    for field, value in shared.items():
        setattr(duplicate, field, value)
    with pytest.raises(IntegrityError), transaction.atomic():
        duplicate.save(force_insert=True)


def test_the_table_covers_every_check_constraint():
    assert constraints_of(CheckConstraint) == {constraint for *_, constraint in CHANGES}


def test_the_table_covers_every_unique_constraint():
    assert constraints_of(UniqueConstraint) == {name for _, name, _ in DUPLICATES} - COLUMNS


def test_two_domains_may_have_projects_of_the_same_name(db):
    make_project("academy", "ccna")
    make_project("university", "ccna")


def test_a_name_may_have_several_versions(db):
    make_definition("campus", version="1.0")
    make_definition("campus", version="2.0")


def test_the_name_of_a_revoked_token_can_be_reused(controller, now):
    ApiToken.objects.filter(pk=controller.token.pk).update(revoked_at=now)
    make_controller("controller-eu", "pool:cml-eu")


def test_a_controller_token_cannot_belong_to_a_user(controller, viewer):
    controller.token.user = viewer
    with pytest.raises(IntegrityError, match="token_belongs_to_someone"), transaction.atomic():
        controller.token.save()


def test_a_personal_token_needs_a_user(viewer):
    token = make_person_token(viewer).token
    token.user = None
    with pytest.raises(IntegrityError, match="token_belongs_to_someone"), transaction.atomic():
        token.save()


def test_referenced_objects_cannot_be_deleted(session):
    for referred in (session.definition, session.project, session.owner, session.project.domain):
        with pytest.raises(ProtectedError):
            referred.delete()
