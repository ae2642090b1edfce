"""Definition pages: texts and actions."""

from __future__ import annotations

import csv
import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.urls import reverse

from lcm.domain.actors import SYSTEM
from lcm.models import LabletDefinition
from lcm.services.definitions import revise_definition
from tests.support.factories import LAB

HTMX = {"HX-Request": "true"}


@pytest.fixture
def client_of(client):
    def log_in(user):
        client.force_login(user)
        return client

    return log_in


@pytest.fixture
def revise(active_definition, now):
    """`revise(3)`: create three more revisions."""

    def apply(count: int) -> LabletDefinition:
        for number in range(count):
            current = active_definition.current_revision.number
            revise_definition(
                definition=active_definition,
                requirements={"cpu_cores": Decimal(10 + number)},
                based_on=current,
                reason=f"Step {number}",
                actor=SYSTEM,
                now=now,
            )
        return active_definition

    return apply


def page_url(name, definition, *more):
    return reverse(name, args=[definition.pk, *more])


@pytest.mark.parametrize(
    ("role", "status", "primary", "in_menu"),
    [
        ("admin", "active", "New session", ["Edit", "Status…", "Delete…"]),
        ("admin", "draft", "Status…", ["Edit", "Delete…"]),
        ("operator", "active", "New session", []),
        ("operator", "draft", "", []),
        ("viewer", "active", "", []),
    ],
)
def test_the_page_has_one_primary_action_and_the_rare_ones_in_a_menu(
    role, status, primary, in_menu, client_of, active_definition, request
):
    LabletDefinition.objects.update(status=status)
    page = client_of(request.getfixturevalue(role)).get(page_url("definition_detail", active_definition))
    head = unescape(page.content.decode()).partition("page-head")[2].partition("</header>")[0]
    buttons = re.findall(r'<a class="button button-primary"[^>]*>(?:<svg.*?</svg>)?([^<]+)', head, re.S)
    assert buttons == ([primary] if primary else [])
    menu = head.partition("menu-list")[2].partition("</div>")[0]
    assert re.findall(r">([^<>]+)</a>", menu) == in_menu


def test_the_sections_of_the_page_lead_to_its_parts(client_of, admin, active_definition):
    body = client_of(admin).get(page_url("definition_detail", active_definition)).content.decode()
    nav = body.partition('section-nav"')[2].partition("</nav>")[0]
    targets = re.findall(r'href="#([\w-]+)"', nav)
    assert len(targets) > 5
    assert [each for each in targets if f'id="{each}"' not in body] == []


def test_revisions_are_a_list_with_search_and_pages(client_of, viewer, revise):
    definition, client = revise(30), client_of(viewer)
    url = page_url("definition_revisions", definition)
    text = client.get(url).content.decode()
    assert "1–25 of 31 revisions" in text
    assert "Revisions of campus v1.0</h1>" in text
    found = client.get(url, {"q": "step 7"}, headers=HTMX).content.decode()
    assert ">1 revision<" in found
    watching = client.get(url, {"outcome": "watching", "basis": "imported"}).content.decode()
    assert "No revision matches" in watching


def test_page_and_api_use_the_same_labels_for_revisions(client_of, api, viewer, revise):
    definition = revise(0)
    path = f"/api/lablet-definitions/{definition.pk}/revisions/"
    (row,) = api(viewer).get(path).json()["results"]
    assert (row["basis"], row["outcome"]) == ("imported", None)
    assert (
        '<span class="muted">None</span>'
        in client_of(viewer).get(page_url("definition_detail", definition)).text
    )
    revise(2)
    bases = {"cpu_cores": {"basis": "p95", "source": "used"}, "memory_gb": {"basis": "max", "source": "used"}}
    definition.revisions.filter(number=3).update(basis="mixed", bases=bases)
    rows = api(viewer).get(path).json()["results"]
    assert [(each["basis"], each["outcome"]) for each in rows] == [
        ("mixed", "watching"),
        ("custom", "superseded"),
        ("imported", "superseded"),
    ]
    assert rows[1]["bases"]["storage_gb"] == {"basis": "keep", "source": None}
    for name in ("definition_detail", "definition_revisions"):
        text = client_of(viewer).get(page_url(name, definition)).text
        assert [text.count(f"{word}</span>") for word in ("Watching", "Superseded")] == [1, 2], name
        assert 'Mixed<div class="sub">CPU p95 used, memory max used</div>' in text, name


@pytest.mark.django_db(transaction=True)
def test_revisions_are_exported_with_the_labels_of_the_page(client_of, viewer, revise):
    export = client_of(viewer).get(page_url("definition_revisions", revise(1)), {"format": "csv"})

    rows = list(csv.DictReader(export.getvalue().decode().splitlines()))
    assert [(row["Revision"], row["Outcome"], row["Actor"]) for row in rows] == [
        ("2", "Watching", SYSTEM.label),
        ("1", "Superseded", rows[1]["Actor"]),
    ]
    assert "Actions" not in rows[0]


@pytest.mark.parametrize("name", ["definition_detail", "definition_revisions"])
def test_the_action_column_exists_only_if_there_are_actions(name, client_of, admin, viewer, revise):
    definition, head = revise(0), '<span class="visually-hidden">Actions</span>'
    assert head not in client_of(admin).get(page_url(name, definition)).content.decode()
    revise(1)
    shown = client_of(admin).get(page_url(name, definition)).content.decode()
    assert head in shown
    assert f'href="{page_url("definition_revert", definition, 1)}"' in shown
    assert head not in client_of(viewer).get(page_url(name, definition)).content.decode()


def test_the_revert_page_shows_both_requirements(client_of, admin, revise):
    definition = revise(1)
    text = client_of(admin).get(page_url("definition_revert", definition, 1)).content.decode()
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    assert "Revert to revision 1?" in text
    assert "campus v1.0 requires 10 cores, 3.5 GB memory and 7 GB storage now. " in text
    assert "Revision 3 requires 4 cores, 3.5 GB memory and 7 GB storage again." in text


def test_reverting_to_the_current_revision_requests_no_reason(client_of, admin, revise):
    definition = revise(1)
    response = client_of(admin).get(page_url("definition_revert", definition, 2))
    text = response.content.decode()
    assert "Revision 2 is current" in text
    assert 'name="reason"' not in text
    posted = client_of(admin).post(
        page_url("definition_revert", definition, 2), {"reason": "x", "based_on": "2"}
    )
    assert posted.status_code == 422


def test_the_lead_shows_the_age_of_the_current_revision(
    client_of, viewer, active_definition, now, time_machine
):
    active_definition.revisions.update(created_at=now - timedelta(days=27))
    time_machine.move_to(now, tick=False)
    text = client_of(viewer).get(page_url("definition_detail", active_definition)).content.decode()
    assert re.search(r"Revision 1 has been current for <time[^>]*>27 d</time>\.", text)


def test_facts_show_arrival_and_placement(client_of, viewer, active_definition):
    client, url = client_of(viewer), page_url("definition_detail", active_definition)
    text = client.get(url).content.decode()
    assert "No, as soon as the lab is ready" in text
    assert "None, any slot" in text
    LabletDefinition.objects.update(awaits_arrival=True, slot_labels={"gpu": "a10"}, pool="cml-us")
    text = client.get(url).content.decode()
    assert "Yes" in text
    assert "gpu: a10" in text
    assert f'<a href="{reverse("pool_list")}?q=cml-us">cml-us</a>' in text


def test_node_memory_is_in_gb_and_zero_is_muted(client_of, viewer, active_definition):
    node = {"label": "r1", "node_definition": "iosv", "cpu_cores": "1", "memory_mb": 512, "storage_gb": "2"}
    none = {"label": "mgmt", "node_definition": "external_connector", "cpu_cores": "0", "memory_mb": 0}
    places = [{"id": str(number), "x": number, "y": 0} for number in range(2)]
    nodes = [node | places[0], none | {"storage_gb": "0"} | places[1]]
    LabletDefinition.objects.update(nodes=nodes, links=[])
    text = client_of(viewer).get(page_url("definition_detail", active_definition)).content.decode()
    assert '<td class="num" data-label="Memory">0.5 <span class="sub">GB</span></td>' in text
    assert '<td class="num muted" data-label="Memory">0 <span class="sub">GB</span></td>' in text


def test_neither_import_field_is_marked_optional(client_of, admin):
    client, url = client_of(admin), reverse("definition_import")
    text = client.get(url).content.decode()
    assert "optional" not in text
    assert " required" not in text
    assert "Choose a file or paste the topology." in client.post(url, {}).content.decode()
    assert "Check the imported values, then save." in client.post(url, {"topology": LAB}).content.decode()


def test_a_topology_over_a_limit_is_rejected_by_page_and_api(client_of, api, admin):
    text = LAB.replace("serial:5041", "x" * 65)
    sentence = f'tags[0] is longer than 64 characters: it has 65 and starts with "{"x" * 40}…".'
    shown = client_of(admin).post(reverse("definition_import"), {"topology": text}).content.decode()
    assert sentence in unescape(shown)
    response = api(admin).post("/api/lablet-definitions/import/", {"topology": text, "name": "long"})
    assert response.status_code == 400
    assert response.json()["details"] == {"topology.nodes[0].tags[0]": [sentence]}
