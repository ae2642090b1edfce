"""Pages of the documentation agree with the code and with each other."""

import json
import re
from pathlib import Path

import pytest

from scheduling.capacity.runtimes.registry import runtime_problems
from tests.support.control_plane import ROOT

DOCS = ROOT / "docs"
FOLDERS = "lcm|scheduling|observations|fairshare|templates|static|tests|docs|deploy"
# Files that the administrator creates.
CREATED = {
    "deploy/.env",
    "deploy/controller-cml-password",
    "deploy/controller-token",
    "deploy/controller.env",
    "deploy/lcm.env",
    "deploy/workers-ca.yaml",
}


def test_the_example_controller_equals_the_tested_file():
    assert (DOCS / "examples" / "controller.py").read_text() in (DOCS / "own-controller.md").read_text()


def test_the_index_lists_every_decision():
    index = (DOCS / "decisions" / "README.md").read_text()
    assert [record.name for record in DOCS.glob("decisions/0*.md") if f"({record.name})" not in index] == []


def test_the_operations_page_lists_every_metric():
    page = (DOCS / "operations.md").read_text().partition("\n## Metrics\n")[2].partition("\n## ")[0]
    folders = ("lcm/monitoring", "scheduling", "fairshare", "observations")
    sources = "".join((ROOT / folder / "metrics.py").read_text() for folder in folders)
    known = set(re.findall(r'"(lcm_[a-z_]+)"', sources))
    assert set(re.findall(r"lcm_[a-z_]+", page)) == known


def paths_in(page: Path) -> set[str]:
    """Return the paths in code spans of a page that begin with a folder of LCM."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    spans = " ".join(re.findall(r"`([^`\n]+)`", text))
    return {path.rstrip("/.") for path in re.findall(rf"(?<![\w./-])(?:{FOLDERS})/[\w./-]*", spans)}


def test_every_path_in_the_documentation_exists():
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")]
    found = {(page.name, path) for page in pages for path in paths_in(page) - CREATED}
    assert [(page, path) for page, path in sorted(found) if not (ROOT / path).exists()] == []


def test_the_site_links_to_the_change_log():
    assert (DOCS / "changelog.md").resolve() == ROOT / "CHANGELOG.md"


@pytest.mark.parametrize(
    ("page", "runtime", "key"),
    [("first-worker.md", "static", "workers"), ("capacity.md", "ec2", "offerings")],
)
def test_runtime_settings_in_the_documentation_are_valid(page, runtime, key):
    blocks = re.findall(r"^```json\n(.*?)^```$", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
    (settings,) = [found for block in blocks if key in (found := json.loads(block))]
    assert runtime_problems(runtime, settings) == {}
