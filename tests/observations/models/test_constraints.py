"""Database constraints reject invalid rows."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.db import IntegrityError, transaction
from django.db.models import CheckConstraint, UniqueConstraint

from observations.models import TargetKind
from observations.selectors.discovery import candidates
from observations.services.discovery import keep_targets
from observations.services.presence import save_presence
from observations.services.requests import request_observation
from tests.support.observed_labs import on_slot, post, seen

# model, the invalid change, the violated constraint
CHANGES = [
    (
        "sessionobservation",
        {"is_sample": True, "not_counted_reason": "excluded"},
        "observation_sample_or_not_counted",
    ),
    (
        "sessionobservation",
        {"is_sample": False, "not_counted_reason": ""},
        "observation_sample_or_not_counted",
    ),
    ("definitionassessment", {"provisioning": "fine"}, "assessment_provisioning_known"),
    ("definitionassessment", {"confidence": "some"}, "assessment_confidence_known"),
    ("driftreview", {"kind": "odd"}, "drift_review_kind_known"),
    ("driftreview", {"state": "seen"}, "drift_review_state_known"),
    ("driftreview", {"state": "acknowledged"}, "drift_review_acknowledged_until"),
    (
        "driftreview",
        {"state": "acknowledged", "kind": "conflict", "acknowledged_until": "now"},
        "drift_review_acknowledged_until",
    ),
    ("observationrequest", {"state": "lost"}, "request_state_known"),
    ("observationrequest", {"expires_at": "an hour ago"}, "request_expires_later"),
    ("presence", {"kind": "ghost"}, "presence_kind_known"),
    ("scrapetarget", {"kind": "ghost"}, "scrape_target_kind_known"),
]
# unique rows: the model, and the fields that a second row would share
TWINS = [
    ("resourceaggregate", "aggregate_once", ["definition", "epoch", "revision"]),
    ("driftreview", "drift_review_once", ["definition", "fingerprint"]),
    ("observationrequest", "request_open_once", ["session"]),
    ("presence", "presence_once", ["kind", "name"]),
    ("scrapetarget", "scrape_target_once", ["kind", "name"]),
]


@pytest.fixture
def a_row(running, collecting, as_operator, now):
    on_slot(running, ports={})
    post(running, seen(now, ports={"r9_vnc": 6001}), now)
    post(collecting, seen(now), now)
    request_observation(session=running, actor=as_operator, now=now)
    save_presence(kind="web", name="lcm-1:8000", address="lcm-1:8000", token=None, now=now)
    keep_targets("web", candidates(TargetKind.WEB, now), now=now)
    moments = {"now": now, "an hour ago": now - timedelta(hours=1)}

    def find(model, changes):
        row = apps.get_model("observations", model).objects.first()
        for name, value in changes.items():
            setattr(row, name, moments.get(value, value))
        return row

    return find


def constraints_of(kind):
    models = apps.get_app_config("observations").get_models()
    return {each.name for model in models for each in model._meta.constraints if isinstance(each, kind)}


@pytest.mark.parametrize(("model", "changes", "constraint"), CHANGES)
def test_a_change_that_violates_a_check_is_rejected(model, changes, constraint, a_row):
    row = a_row(model, changes)
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        row.save()


@pytest.mark.parametrize(("model", "constraint", "fields"), TWINS)
def test_a_duplicate_row_is_rejected(model, constraint, fields, a_row):
    twin = a_row(model, {})
    twin.pk = type(twin)._meta.pk.get_default()
    twin._state.adding = True
    with pytest.raises(IntegrityError), transaction.atomic():
        twin.save(force_insert=True)


def test_every_constraint_is_in_the_tables_above():
    assert constraints_of(CheckConstraint) == {constraint for *_, constraint in CHANGES}
    assert constraints_of(UniqueConstraint) == {constraint for _, constraint, _ in TWINS}
