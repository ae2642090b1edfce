"""Rules for templates and style sheets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

from lcm.web.server.stylesheet import INDEX, NAME, StyleSheetFinder

ROOT = Path(__file__).parents[3]
TEMPLATES = ROOT / "templates"


@pytest.mark.parametrize(
    "mark", ['class="chart sparkline', "<progress", 'class="empty', 'class="toast ', 'class="bulk-bar{']
)
def test_a_component_is_written_in_one_place(mark):
    written = [path for path in TEMPLATES.rglob("*.html") if mark in path.read_text()]
    assert [path.parent.name in ("components", "charts") for path in written] == [True], written


def test_one_style_sheet_has_every_file_once_in_its_layer():
    folder = ROOT / "static" / "css"
    index = folder / INDEX.partition("/")[2]
    bundle = Path(finders.find(NAME)).read_text()
    assert "@import" not in bundle
    assert bundle.startswith(index.read_text().partition("@import")[0])
    for path in folder.rglob("*.css"):
        if path != index:
            layer = path.parent.name if path.parent != folder else path.stem
            assert bundle.count(f"@layer {layer} {{\n{path.read_text()}}}\n") == 1, path


def test_the_style_sheet_follows_its_files(tmp_path, settings):
    settings.DATA_DIR, settings.STATICFILES_DIRS = tmp_path, [tmp_path]
    (tmp_path / "css").mkdir()
    (tmp_path / INDEX).write_text('@import url("base.css") layer(base);\n')
    finder = StyleSheetFinder()
    for colour in ("red", "green"):
        (tmp_path / "css" / "base.css").write_text(f"a {{ color: {colour} }}\n")
        assert Path(finder.find(NAME)).read_text() == f"@layer base {{\na {{ color: {colour} }}\n}}\n\n"
    assert finder.find("css/other.css") == []


def test_no_template_has_inline_styles_or_scripts():
    forbidden = re.compile(r"\sstyle=|<style|<script(?![^>]*\bsrc=)|\son[a-z]+=")
    found = [path.name for path in (ROOT / "templates").rglob("*.html") if forbidden.search(path.read_text())]
    assert found == []


def test_links_that_open_the_dialog_set_their_own_swap():
    """A link inside a panel with its own hx-swap would inherit it and replace the dialog element."""
    tag = re.compile(r"<(?:a|button|form)\b(?:\{%.*?%\}|\{\{.*?\}\}|[^>])*>", re.S)
    found = [
        (path.name, each)
        for path in TEMPLATES.rglob("*.html")
        for each in tag.findall(path.read_text())
        if 'hx-target="#dialog"' in each
    ]
    assert len(found) > 30
    assert [place for place in found if 'hx-swap="innerHTML"' not in place[1]] == []
