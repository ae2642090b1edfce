"""Pages that repeat what is elsewhere say the same."""

import json
import re

import pytest

from scheduling.capacity.runtimes.registry import runtime_problems
from tests.support.control_plane import ROOT

DOCS = ROOT / "docs"


def test_the_worked_controller_is_the_one_that_is_tested():
    assert (DOCS / "examples" / "controller.py").read_text() in (DOCS / "own-controller.md").read_text()


def test_the_index_of_decisions_has_each_record():
    index = (DOCS / "decisions" / "README.md").read_text()
    assert [record.name for record in DOCS.glob("decisions/0*.md") if f"({record.name})" not in index] == []


def test_operations_name_every_metric():
    page = (DOCS / "operations.md").read_text().partition("\n## Metrics\n")[2].partition("\n## ")[0]
    apps = ("lcm", "scheduling", "fairshare", "observations")
    sources = "".join((ROOT / app / "metrics.py").read_text() for app in apps)
    known = set(re.findall(r'"(lcm_[a-z_]+)"', sources))
    assert set(re.findall(r"lcm_[a-z_]+", page)) == known


def test_the_site_shows_the_change_log_itself():
    assert (DOCS / "changelog.md").resolve() == ROOT / "CHANGELOG.md"


@pytest.mark.parametrize(
    ("page", "runtime", "key"),
    [("first-worker.md", "static", "workers"), ("capacity.md", "ec2", "offerings")],
)
def test_settings_of_runtimes_are_such_as_a_pool_takes(page, runtime, key):
    blocks = re.findall(r"^```json\n(.*?)^```$", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
    (settings,) = [found for block in blocks if key in (found := json.loads(block))]
    assert runtime_problems(runtime, settings) == {}
