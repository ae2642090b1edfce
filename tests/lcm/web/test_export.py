"""Exports contain the values and labels of the pages."""

from __future__ import annotations

import csv
import json

import pytest
from django.urls import reverse

from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from observations.models import DefinitionAssessment
from scheduling.models import ObserverRun, TickRun
from tests.support.capacity_setup import make_slot, pool_named

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def export(client, viewer):
    """`export(list)`: the rows of its CSV and of its JSON."""
    client.force_login(viewer)

    def read(name: str) -> tuple[list[dict[str, str]], list[dict[str, object]]]:
        as_csv, as_json = (_text(client.get(reverse(name), {"format": kind})) for kind in ("csv", "json"))
        return list(csv.DictReader(as_csv.splitlines())), json.loads(as_json)

    return read


def _text(response) -> str:
    text: str = response.getvalue().decode()
    return text


def test_sessions_have_their_drift_and_their_slot(export, session_in):
    LabletSession.objects.filter(pk=session_in(S.RUNNING).pk).update(port_drift_detected=True)
    session_in(S.PENDING)
    sheet, rows = export("session_list")
    assert {row["Status"]: row["Port drift"] for row in sheet} == {"Running": "True", "Pending": "False"}
    assert {row["status"]: row["port_drift"] for row in rows} == {"Running": True, "Pending": False}
    assert "slot" in rows[0]


def test_slots_say_whether_they_are_cordoned_or_spot(export, now):
    make_slot(pool_named("cml-eu"), 1, cordoned=True, is_spot=True, interruption_deadline=now)
    sheet, [row] = export("slot_list")
    assert (sheet[0]["Cordoned"], sheet[0]["Spot"]) == ("True", "True")
    assert (row["cordoned"], row["spot"], row["interruption"][:10]) == (True, True, now.isoformat()[:10])


def test_definitions_are_exported_with_labels(export, definition):
    DefinitionAssessment.objects.update(provisioning="over_provisioned")
    sheet, [row] = export("definition_list")
    assert (sheet[0]["Class"], sheet[0]["Status"]) == ("Over-provisioned", "Draft")
    assert (row["class"], row["status"]) == ("Over-provisioned", "Draft")


def test_a_failed_step_of_a_tick_is_exported_as_text(export, now):
    errors = {"scale_down": "no response"}
    TickRun.objects.create(pool=pool_named("cml-eu"), started_at=now, duration_ms=1, errors=errors)
    sheet, _ = export("tick_list")
    assert sheet[0]["Errors"] == "scale down: no response"


def test_runs_are_exported(export, now):
    ObserverRun.objects.create(observer="usage-record", started_at=now, duration_ms=7, failure_count=2)
    sheet, [row] = export("run_list")
    assert (sheet[0]["Observer"], sheet[0]["Duration ms"]) == ("usage-record", "7")
    assert (row["failed"], row["error"]) == (2, "")
