"""The examples of docs/architecture.md, run in this project."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from django.urls import include, path, reverse
from django.utils import timezone

from lcm import urls
from lcm.web.navigation import navigation_groups
from scheduling.capacity.runtimes import registry
from scheduling.capacity.runtimes.base import LaunchRequest
from scheduling.coordination.coordinator import ScheduleCoordinator
from scheduling.models import Pool
from scheduling.placement.framework import plugin as plugins
from tests.scheduling.placement.inline_plugins import job, node, run_with, snapshot
from tests.support import extensions

GUIDE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
BLOCK = re.compile(r"```\w+\n(?:# |\{# )file: (?P<name>[\w.]+)(?: #\})?\n(?P<text>.*?)```", re.DOTALL)
EXAMPLES = {match["name"]: match["text"] for match in BLOCK.finditer(GUIDE)}


@pytest.fixture
def example(monkeypatch):
    def run(name):
        module = ModuleType(f"docs_{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(EXAMPLES[f"{name}.py"], f"architecture.md: {name}.py", "exec"), vars(module))
        return vars(module)

    return run


@pytest.fixture
def page(example, settings, tmp_path):
    """The page of the guide, with its URL and template."""
    (tmp_path / "sites.html").write_text(EXAMPLES["sites.html"])
    (templates,) = settings.TEMPLATES
    settings.TEMPLATES = [{**templates, "DIRS": [*templates["DIRS"], tmp_path]}]
    found = example("page")
    settings.ROOT_URLCONF = type(
        "Urls", (), {"urlpatterns": [*found["urlpatterns"], path("", include(urls))]}
    )
    with extensions.added(found["EXTENSION"]):
        yield found


@pytest.fixture
def viewer_client(client, viewer):
    client.force_login(viewer)
    return client


def test_the_page_is_rendered_alone_and_as_a_panel(page, viewer_client, definition):
    address = reverse("definition_sites", args=[definition.pk])
    assert f"{definition.name} runs at all sites." in viewer_client.get(address).content.decode()
    panel = viewer_client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert panel.strip().startswith('<section class="panel"')
    plan = next(group for group in navigation_groups() if group.key == "Plan")
    assert plan.entries[-1].key == "sites"


def test_the_panel_is_loaded_by_the_page_of_a_definition(page, example, viewer_client, definition):
    with extensions.added(example("panel")["EXTENSION"]):
        text = viewer_client.get(reverse("definition_detail", args=[definition.pk])).content.decode()
    assert f'id="panel-sites" aria-label="Sites" hx-get="/sites/{definition.pk}"' in text


def test_the_column_is_on_the_page_and_in_the_export(example, viewer_client, session):
    with extensions.added(example("column")["EXTENSION"]):
        text = viewer_client.get(reverse("session_list")).content.decode()
        export = b"".join(viewer_client.get(reverse("session_list"), {"format": "csv"}).streaming_content)
    assert '<td class="num" data-label="Attempt">1</td>' in text
    assert b"Attempt" in export
    assert "Attempt" not in viewer_client.get(reverse("session_list")).content.decode()


@pytest.mark.django_db
def test_the_observer_runs(example, session):
    coordinator = ScheduleCoordinator()
    with extensions.added(example("observer")["EXTENSION"]):
        coordinator.load_installed()
    result = coordinator.process_observer("kernel-counter", timezone.now)
    assert result.success_count == session.kernels.count() > 0


def test_the_plugin_keeps_a_node_free(example, monkeypatch):
    monkeypatch.setattr(plugins, "_registered", dict(plugins.plugins()))
    found = example("plugin")["ReserveFirst"](node="a")
    assert plugins.plugins()["reserve_first"] is type(found)
    cycle = run_with(snapshot([node("a"), node("b")], [job("exam", 1), job("lab", 4)]), found)
    assert [(each.job.id, each.parts[0].node) for each in cycle.placed] == [("exam", "b")]


def test_the_runtime_launches_once_per_token(example, monkeypatch):
    found = example("runtime")["ShelfRuntime"]
    monkeypatch.setattr(registry, "RUNTIMES", {**registry.RUNTIMES, "shelf": found})
    runtime = registry.runtime_for(Pool(name="cml-eu", runtime="shelf"))
    (offering,) = runtime.offerings()
    request = LaunchRequest("token", "slot", "cml-eu-01", offering)
    assert runtime.launch(request) is runtime.launch(request)
    (instance,) = runtime.describe()
    assert runtime.probe(instance).ready
    runtime.terminate(instance.id)
    assert not runtime.describe()
    assert registry.runtime_problems("shelf", {"x": 1}) == {"x": "There is no setting “x”."}
