"""Singular forms: texts with a count, when that count is 1."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
from django.template.loader import render_to_string
from django.urls import reverse

from fairshare.pages.texts import listed
from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput
from lcm.models import ChangeLog, LabletDefinition
from lcm.pages import lists as lcm_lists
from lcm.pages.changes import field_differences
from lcm.services.changelog import log_change
from lcm.services.definitions import revise_definition
from lcm.services.sessions import extend_session
from lcm.web.charts.topology import picture_of
from lcm.web.list_page import with_additions
from lcm.web.wording import core_count_text, count_text
from observations.models import DefinitionAssessment, DriftReview
from observations.pages import lists as observed_lists
from observations.pages.review_summary import review_summary
from observations.services.outcomes import RevisionProgress
from scheduling.models import Pool, TickRun
from scheduling.pages.lists import POOLS
from scheduling.placement.plugins.quota import _quota_text as quota_text
from tests.support.capacity_setup import make_slot, pool_named
from tests.support.factories import make_definition

NODE = {"id": "n0", "label": "r1", "node_definition": "iosv", "x": 0, "y": 0}


def page_text(page: object) -> str:
    body = re.sub(r"<[^>]+>", " ", page.content.decode())
    return re.sub(r"\s+", " ", html.unescape(body))


@pytest.fixture
def one_core(active_definition, now) -> LabletDefinition:
    requirements = {"cpu_cores": Decimal(1)}
    revise_definition(
        definition=active_definition,
        requirements=requirements,
        based_on=1,
        reason="less",
        actor=SYSTEM,
        now=now,
    )
    return active_definition


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (count_text(1, "person", "people"), "1 person"),
        (count_text(1_200, "person", "people"), "1,200 people"),
        (core_count_text(Decimal("1.00")), "1\N{NO-BREAK SPACE}core"),
        (core_count_text(Decimal("0.5")), "0.5\N{NO-BREAK SPACE}cores"),
        (picture_of([NODE], []).description, "1 node, 0 links"),
        (listed(["a", "b", "c", "d", "e"]), "a, b, c, d and 1 other"),
        (quota_text("lab", "sessions", 1, 1, 1), "lab has the only session it may have at once."),
        (quota_text("lab", "sessions", 0, 1, 0), "lab may have no sessions."),
    ],
)
def test_counts_use_singular_and_plural(actual, expected):
    assert actual == expected


@pytest.mark.parametrize(
    ("n", "provisioning", "text"),
    [
        (1, "not_enough_data", "**Not enough data: 1 session observed.**"),
        (2, "not_enough_data", "**Not enough data: 2 sessions observed.**"),
        (1, "right_sized", "** according to 1 session."),
        (2, "right_sized", "** according to 2 sessions, 1 with revision 3."),
    ],
)
def test_the_lead_of_one_session_is_singular(n, provisioning, text):
    preview = SimpleNamespace(
        evidence=SimpleNamespace(
            assessment=SimpleNamespace(flags={}, provisioning=provisioning),
            digest=SimpleNamespace(n=n),
            current_revision_n=1,
        ),
        definition=SimpleNamespace(revision=SimpleNamespace(number=3, outcome="verified")),
    )
    assert text in review_summary(preview)


def test_the_lead_of_one_definition_is_singular(definition):
    assert with_additions(lcm_lists.DEFINITIONS).lead() == "**No definition needs review.**"
    DefinitionAssessment.objects.update(priority=1, waste_cpu=5, waste_memory=7)
    waste = "**1 of 1 definition needs review.** Waste in the last 30 days: 5 core-hours"
    assert waste in with_additions(lcm_lists.DEFINITIONS).lead()
    LabletDefinition.objects.update(needs_review=True)
    make_definition("other")
    assert lcm_lists.DEFINITIONS.lead() == "**1 of 2 definitions needs review.**"


@pytest.mark.parametrize(("count", "text"), [(1, ", 1 conflict."), (2, ", 2 conflicts.")])
def test_one_port_of_drift_is_singular(definition, now, count, text):
    for name in ("r1", "r2")[:count]:
        DriftReview.objects.create(
            definition=definition, fingerprint=name, name=name, kind="conflict", first_seen=now, last_seen=now
        )
    assert text in observed_lists.DRIFT.lead()


@pytest.mark.parametrize(("slots", "text"), [(0, "0 slots ready · 1 can be launched"), (1, "1 slot ready ·")])
def test_a_pool_of_one_slot_is_singular(db, slots, text):
    pool = pool_named("cml-eu", max_slots=1)
    for number in range(slots):
        make_slot(pool, number + 1)
    assert text in POOLS.lead()


def test_one_core_of_a_definition_is_singular(client, admin, one_core, now):
    client.force_login(admin)
    assert "Requires 1 core," in page_text(client.get(reverse("definition_detail", args=[one_core.pk])))
    requirements = {"cpu_cores": Decimal(2)}
    revise_definition(
        definition=one_core, requirements=requirements, based_on=2, reason="more", actor=SYSTEM, now=now
    )
    assert "requires 1 core, " in page_text(client.get(reverse("definition_revert", args=[one_core.pk, 2])))


def test_one_core_of_a_session_is_singular(client, viewer, one_core, session):
    client.force_login(viewer)
    assert "CPU 1 core " in page_text(client.get(reverse("session_observation", args=[session.pk])))


@pytest.mark.parametrize(("count", "text"), [(1, "1 node, most"), (2, "2 nodes, most")])
def test_one_observed_node_is_singular(count, text):
    figures = {"cpu": 100, "memory": 100}
    node = {"label": "r1", "used": figures, "allocated": figures}
    shown = render_to_string("observations/nodes.html", {"node_count": count, "nodes": [node] * count})
    assert text in shown


def test_one_saved_weight_is_singular(client, admin, session):
    pool = Pool.objects.get(name="cml-eu")
    client.force_login(admin)
    project = session.project
    form = {"pool": pool.name, f"w:project:{project.pk}:{project.domain_id}": "2", "reason": "exams"}
    page = client.post(reverse("fair_share_weights"), form, follow=True)
    assert "1 weight saved. It takes effect with the next calculation." in page_text(page)


def test_one_unit_in_a_change_is_singular(session):
    for name, text in (("cpu_cores", "1 core"), ("half_life_days", "1 day"), ("memory_gb", "1 GB")):
        log_change(session, actor=SYSTEM, event="tried", message="tried", after={name: "1.00"})
        [row] = field_differences(ChangeLog.objects.order_by("pk").last())
        assert row.after == text


def test_one_session_above_a_revision_is_singular():
    [text] = RevisionProgress({"memory_gb": 1}, {"memory_gb": 1}).texts
    assert str(text) == "memory exceeded by 1 of 1 session"


def test_a_limit_of_one_hour_is_singular(session, now):
    session.definition.max_duration = timedelta(hours=1)
    with pytest.raises(InvalidInput, match="may run for at most 1 hour"):
        extend_session(session=session, ends_at=now + timedelta(hours=5), actor=SYSTEM, now=now)


@pytest.mark.parametrize("name", ["tick_list", "queue_ticks"])
def test_a_failed_step_is_shown_as_text(client, viewer, session, now, name):
    pool = Pool.objects.get(name="cml-eu")
    TickRun.objects.create(pool=pool, started_at=now, duration_ms=1, errors={"scale_down": "no response"})
    client.force_login(viewer)
    text = page_text(client.get(reverse(name)))
    assert "scale down no response" in text
    assert "scale_down" not in text
