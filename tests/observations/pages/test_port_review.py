"""Comparison of the port template with observed ports, and applying selected changes."""

from datetime import timedelta
from decimal import Decimal
from unittest.mock import patch

import pytest
from django.urls import reverse

from lcm.cml.observation.live_ports import NodeTags, ports_by_node
from lcm.cml.topology.port_templates import port_changes
from lcm.demo.pools import place_session
from lcm.models import DefinitionRevision, LabletDefinition
from lcm.services.definitions import revise_definition
from observations.models import SessionObservation
from observations.selectors.port_review import port_review_of
from tests.support.factories import make_session
from tests.support.observed_labs import make_past_session, on_slot, post, seen

HTMX = {"HX-Request": "true"}
AS_PLANNED = {"r1": ["serial:5041"], "host": ["pat:2022:22"]}
WITH_SSH = {"r1": ["serial:5041", "ssh:2022:22"]}


@pytest.fixture
def as_(client):
    def log_in(user):
        client.force_login(user)
        return client

    return log_in


@pytest.fixture
def labs(active_definition, project, operator, now):
    """`labs({"r1": ["serial:5041"]}, …)` creates a session for each, with these node tags, newest last."""

    def make(*tags_by_node, **more):
        definition = LabletDefinition.objects.select_related("current_revision").get(pk=active_definition.pk)
        before = SessionObservation.objects.count()
        sessions = []
        for number, tags in enumerate(tags_by_node):
            at = now - timedelta(hours=1) + timedelta(minutes=before + number)
            session = make_past_session(definition, project, operator, ended=at)
            ports = ports_by_node([NodeTags(label, tuple(each)) for label, each in tags.items()]).all
            body = seen(at, ports=ports, **more)
            for node, (label, each) in zip(body["nodes"], tags.items(), strict=False):
                node |= {"label": label, "tags": each}
            post(session, body, now)
            sessions.append(session)
        return sessions

    return make


def lines_of(definition):
    fresh = LabletDefinition.objects.select_related("current_revision").get(pk=definition.pk)
    lines = port_review_of(fresh).lines
    return {line.name: (line.in_template, line.observed, line.action, line.suggested) for line in lines}


def test_template_and_observed_ports_are_compared(labs, active_definition):
    labs(AS_PLANNED, WITH_SSH, WITH_SSH)
    assert lines_of(active_definition) == {
        "r1_serial": (True, 3, "", False),
        "host_pat": (True, 1, "remove", True),
        "r1_ssh": (False, 2, "add", True),
    }


def test_at_exactly_half_nothing_is_suggested(labs, active_definition):
    labs(AS_PLANNED, WITH_SSH)
    assert lines_of(active_definition)["host_pat"] == (True, 1, "remove", False)
    assert lines_of(active_definition)["r1_ssh"] == (False, 1, "add", False)


def test_a_suggested_port_gets_a_free_outside_port(labs, active_definition):
    labs(WITH_SSH)
    suggested = port_review_of(active_definition).suggested_template
    assert [(entry.name, entry.outside, entry.inside) for entry in suggested] == [
        ("r1_serial", 5041, None),
        ("r1_ssh", 2023, 22),
    ]


def test_ports_with_the_same_target_are_the_same_port(labs, active_definition):
    """A second pat port with a lower inside port changes the names of both."""
    labs({"r1": ["serial:5041"], "host": ["pat:2022:22", "pat:2021:21"]})
    review = port_review_of(active_definition)
    assert [(line.name, line.port.inside, line.action) for line in review.lines[1:]] == [
        ("host_pat", 22, ""),
        ("host_pat", 21, "add"),
    ]
    assert [entry.name for entry in review.suggested_template] == ["r1_serial", "host_pat_22", "host_pat"]


def test_a_port_that_cannot_be_in_the_template_has_a_problem(labs, active_definition, as_, admin):
    labs({**AS_PLANNED, "r9": ["vnc:6001"]})
    untagged = labs(AS_PLANNED)[0]
    row = SessionObservation.objects.get(session=untagged)
    row.observed_ports = {**row.observed_ports, "r1_http": 8080}
    row.save()
    review = port_review_of(active_definition)
    assert {line.name: line.problem for line in review.lines if line.problem} == {
        "r9_vnc": "There is no node “r9”.",
        "r1_http": "No observed tag describes this port.",
    }
    assert [entry.name for entry in review.suggested_template] == ["r1_serial", "host_pat"]
    labs({**AS_PLANNED, "r9": ["vnc:6001"]})
    SessionObservation.objects.filter(session=untagged).delete()
    shown = as_(admin).get(page("definition_port_review", active_definition)).content.decode()
    assert "There is no node “r9”." in shown
    assert "Apply ports" not in shown


def test_only_complete_observations_with_the_current_template_count(labs, active_definition, as_admin, now):
    labs(WITH_SSH, incomplete=("observed_ports",))
    excluded = labs(WITH_SSH)[0]
    SessionObservation.objects.filter(session=excluded).update(is_sample=False, not_counted_reason="excluded")
    assert port_review_of(active_definition).sessions == 0
    labs(WITH_SSH)
    change = {"definition": active_definition, "reason": "x", "actor": as_admin, "now": now}
    revise_definition(**change, requirements={"cpu_cores": Decimal(5)}, based_on=1)
    labs(WITH_SSH)
    assert lines_of(active_definition)["r1_ssh"][1] == 2
    review = port_review_of(active_definition)
    ports = [entry.to_dict() for entry in review.suggested_template]
    revise_definition(**change, requirements={}, port_template=ports, based_on=2)
    assert port_review_of(active_definition).sessions == 0
    labs(WITH_SSH)
    assert not port_review_of(active_definition).has_actions


# --- API -----------------------------------------------------------------------------------------


@pytest.fixture
def path(active_definition):
    return f"/api/lablet-definitions/{active_definition.pk}/"


def test_review_apply_and_revert_over_the_api(
    api, admin, viewer, path, labs, active_definition, project, operator, now
):
    on_slot(make_past_session(active_definition, project, operator, ended=now))
    held = placed(active_definition, project, operator, now)
    labs(AS_PLANNED, WITH_SSH, WITH_SSH)
    review = api(viewer).get(f"{path}port-review/").json()
    assert (review["based_on"], review["sessions"]) == (1, 3)
    assert review["ports"][2] == {
        "name": "r1_ssh",
        "port": review["suggested_template"][1],
        "in_template": False,
        "observed": 2,
        "action": "add",
        "suggested": True,
        "problem": "",
    }
    body = {"port_template": review["suggested_template"], "based_on": 1, "reason": "labs use ssh"}
    assert api(viewer).post(f"{path}port-review/apply/", body).status_code == 403
    made = api(admin).post(f"{path}port-review/apply/", body)
    assert made.status_code == 201
    assert made.json()["port_template"] == review["suggested_template"]
    assert made.json()["port_changes"] == {"added": ["r1_ssh"], "removed": ["host_pat"], "changed": []}
    assert DefinitionRevision.objects.get(number=2).aggregate["ports"]["observed"]["r1_ssh"] == 2
    again = api(admin).post(f"{path}port-review/apply/", body)
    assert (again.status_code, again.json()["details"]) == (409, {"current": 2, "based_on": 1})

    fresh = LabletDefinition.objects.get(pk=active_definition.pk)
    new = placed(fresh, project, operator, now)
    assert ports_of(held) == {"r1_serial", "host_pat"}
    assert ports_of(new) == {"r1_serial", "r1_ssh"}

    api(admin).post(f"{path}revisions/1/revert/", {"based_on": 2, "reason": "not needed"})
    newest, *_, first = api(viewer).get(f"{path}revisions/").json()["results"]
    assert (newest["number"], newest["port_template"]) == (3, first["port_template"])
    assert newest["port_changes"] == {"added": ["host_pat"], "removed": ["r1_ssh"], "changed": []}
    assert first["port_changes"] == {"added": [], "removed": [], "changed": []}


def placed(definition, project, owner, now):
    session = make_session(definition, project, owner, now=now)
    assert place_session(session, now=now)
    return session


def ports_of(session):
    """Return the ports allocated to a session, which are the ports of its revision."""
    allocated = set(session.port_allocations.values_list("name", flat=True))
    session.revision.refresh_from_db()
    assert allocated == {entry["name"] for entry in session.revision.port_template}
    return allocated


def test_revise_takes_a_port_template(api, admin, path):
    ssh = {"node_label": "r1", "protocol": "ssh", "outside": 2222, "inside": 22}
    body = {"port_template": [ssh], "based_on": 1, "reason": "ssh only"}
    made = api(admin).post(f"{path}revise/", body)
    assert made.status_code == 201
    assert [port["name"] for port in made.json()["port_template"]] == ["r1_ssh"]
    wrong = api(admin).post(f"{path}revise/", body | {"port_template": [ssh | {"node_label": "r9"}]})
    assert wrong.status_code == 409
    wrong = body | {"port_template": [ssh | {"node_label": "r9"}], "based_on": 2}
    response = api(admin).post(f"{path}revise/", wrong)
    assert (response.status_code, response.json()["details"]) == (
        400,
        {"port_template": ["Port 1, “r9 ssh:2222:22”: There is no node “r9”."]},
    )
    empty = api(admin).post(f"{path}revise/", {"port_template": [], "based_on": 2, "reason": "no ports"})
    assert (empty.status_code, empty.json()["port_template"]) == (201, [])


# --- pages ---------------------------------------------------------------------------------------


def page(name, definition, *more):
    return reverse(name, args=[definition.pk, *more])


def test_the_review_page_applies_the_selected_changes(as_, admin, viewer, labs, active_definition):
    client, review = as_(viewer), page("definition_port_review", active_definition)
    assert review not in client.get(page("definition_detail", active_definition)).content.decode()
    assert "No session with this template has been observed." in client.get(review).content.decode()
    labs(AS_PLANNED, WITH_SSH, WITH_SSH)
    assert review in client.get(page("definition_detail", active_definition)).content.decode()
    assert "Only Admins can apply changes: " in client.get(review, headers=HTMX).content.decode()
    client = as_(admin)
    shown = client.get(review).content.decode()
    assert 'name="add" value="r1 ssh:2023:22" checked' in shown
    assert 'name="remove" value="host pat:2022:22" checked' in shown

    here = page("definition_apply_ports", active_definition)
    chosen = {"add": "r1 ssh:2023:22", "based_on": "1", "reason": "labs use ssh"}
    nothing = client.post(here, chosen | {"reason": " "}, headers=HTMX)
    assert nothing.status_code == 422
    assert 'name="remove" value="host pat:2022:22" aria' in nothing.content.decode()
    made = client.post(here, chosen)
    assert (made.status_code, made.headers["Location"]) == (302, page("definition_detail", active_definition))
    revision = DefinitionRevision.objects.get(number=2)
    assert [port["name"] for port in revision.port_template] == ["r1_serial", "host_pat", "r1_ssh"]
    stale = client.post(here, chosen)
    assert stale.status_code == 409
    assert "applied revision 2 a moment ago" in stale.content.decode()
    for name in ("definition_detail", "definition_revisions"):
        assert "Ports: added r1_ssh" in client.get(page(name, active_definition)).content.decode()
    revert = client.get(page("definition_revert", active_definition, 1)).content.decode()
    assert "Ports: removed r1_ssh." in revert


def test_ports_are_edited_by_hand(as_, admin, definition):
    client, here = as_(admin), page("definition_ports", definition)
    assert "r1 serial:5041\nhost pat:2022:22" in client.get(here).content.decode()
    data = {"port_template": "r1 serial:5041\r\n\r\nr9 ssh:22\r\n", "based_on": "1", "reason": "x"}
    wrong = client.post(here, data)
    assert wrong.status_code == 422
    assert "Port 2, “r9 ssh:22”: There is no node “r9”." in wrong.content.decode()
    made = client.post(here, data | {"port_template": "r1 serial:5041\nr1 ssh:5022:22"})
    assert made.status_code == 302
    assert [port["name"] for port in DefinitionRevision.objects.get(number=2).port_template] == [
        "r1_serial",
        "r1_ssh",
    ]
    many = "\n".join(f"r1 pat:{6000 + inside}:{inside}" for inside in range(1, 12))
    assert client.post(here, data | {"port_template": many, "based_on": "2"}).status_code == 302
    with patch("lcm.models.definitions.port_changes", wraps=port_changes) as compare:
        rows = client.get(page("definition_revisions", definition)).content.decode()
    assert "r1_pat_10 and 3 more</div>" in rows
    assert compare.call_count == 2
    assert "and 3 more." in client.get(page("definition_revert", definition, 2)).content.decode()
    stale = client.post(here, data | {"port_template": ""})
    assert stale.status_code == 422
    assert "applied revision 3 a moment ago" in stale.content.decode()
