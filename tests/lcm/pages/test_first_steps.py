"""The checklist of an empty installation, and the documentation that it links."""

from __future__ import annotations

import pytest
from django.urls import reverse

from lcm.pages import help as help_pages
from scheduling.models import Pool, Slot, SlotState
from tests.lcm.pages.test_sessions import without_markup
from tests.support.factories import make_controller, make_session


@pytest.fixture
def steps(client, admin):
    """`steps()`: the state of each step on the overview."""
    client.force_login(admin)

    def read() -> list[tuple[str, str]]:
        shown = client.get(reverse("home")).context["first_steps"]
        return [
            (str(each.step.title), "done" if each.is_done else "next" if each.is_next else "open")
            for each in shown
        ]

    return read


def test_an_empty_installation_shows_the_steps_to_the_first_session(db, steps, client):
    Pool.objects.all().delete()
    assert steps() == [
        ("Create a domain", "next"),
        ("Create a project and add a member", "open"),
        ("Create a pool", "open"),
        ("Connect a worker", "open"),
        ("Create a token for the controller", "open"),
        ("Import a definition", "open"),
        ("Request a session", "open"),
    ]
    page = client.get(reverse("home")).content.decode()
    assert f'href="{reverse("domain_create")}"' in page
    assert f'href="{reverse("help", args=["first-worker.html"])}#2-pool"' in page
    assert "Next Create a domain" in without_markup(page)


def test_steps_are_done_as_their_objects_appear_and_end_with_the_first_session(
    steps, project, operator, active_definition, pool_with_slot, now
):
    states = dict(steps())
    assert states.pop("Create a token for the controller") == "next"
    assert states.pop("Request a session") == "open"
    assert set(states.values()) == {"done"}
    make_controller("eu-1", "pool:cml-eu")
    assert dict(steps())["Request a session"] == "next"
    make_session(active_definition, project, operator, now=now)
    assert steps() == []


@pytest.fixture
def pool_with_slot(db) -> Pool:
    Pool.objects.exclude(name="cml-eu").delete()
    pool, _ = Pool.objects.get_or_create(name="cml-eu", defaults={"system": "cml"})
    Slot.objects.create(pool=pool, number=1, state=SlotState.READY, max_leases=1, **pool.amounts.as_dict())
    return pool


def test_the_worker_step_leads_to_the_form_of_the_only_pool(steps, client, pool_with_slot):
    page = client.get(reverse("home")).content.decode()
    assert f'href="{reverse("pool_edit", args=[pool_with_slot.pk])}"' in page


def test_the_demo_and_other_roles_see_no_first_steps(steps, client, viewer, settings):
    settings.DEMO = True
    assert steps() == []
    settings.DEMO = False
    client.force_login(viewer)
    assert client.get(reverse("home")).context["first_steps"] == []


def test_every_page_links_the_documentation(client, viewer, monkeypatch, settings):
    client.force_login(viewer)
    assert f'href="{reverse("help", args=["guide.html"])}"' in client.get(reverse("home")).content.decode()
    monkeypatch.setitem(settings.CONFIG, "DOCUMENTATION_URL", "https://docs.example.org/lcm/")
    page = client.get(reverse("session_list")).content.decode()
    assert 'href="https://docs.example.org/lcm/guide.html"' in page


def test_the_documentation_is_the_built_site_or_the_markdown_files(client, viewer, monkeypatch, tmp_path):
    client.force_login(viewer)
    address = reverse("help", args=["first-worker.html"])
    monkeypatch.setattr(help_pages, "SITE", tmp_path)
    response = client.get(address)
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response.content.decode().startswith("# First worker")
    (tmp_path / "first-worker.html").write_text("<h1>First worker</h1>")
    response = client.get(address)
    assert response["Content-Type"] == "text/html"
    assert response.content == b"<h1>First worker</h1>"


@pytest.mark.parametrize("path", ["nothing.html", "../pyproject.toml", "a\0b", "../docs", ".", "a" * 400])
def test_paths_outside_the_documentation_are_not_found(path, client, viewer):
    client.force_login(viewer)
    assert client.get(f"/help/{path}").status_code == 404
