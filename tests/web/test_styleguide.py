"""The style guide: every part, with DEBUG only."""

from __future__ import annotations

import re
from pathlib import Path

from django.urls import reverse

ROOT = Path(__file__).parents[2]


def test_it_is_there_with_debug_only(client, viewer, settings):
    client.force_login(viewer)
    settings.DEBUG = False
    assert client.get(reverse("styleguide")).status_code == 404
    settings.DEBUG = True
    assert client.get(reverse("styleguide")).status_code == 200


def test_it_shows_every_chart(client, viewer, settings):
    settings.DEBUG = True
    client.force_login(viewer)
    page = client.get(reverse("styleguide")).content.decode()
    for mark in (
        "column kind-1",
        'class="spark"',
        'class="dot"',
        'class="topology"',
        'class="seg',
        "portmap",
    ):
        assert mark in page, mark


def test_the_style_sheet_imports_every_file_once():
    folder = ROOT / "static" / "css"
    imported = re.findall(r'@import url\("(.+?)"\)', (folder / "lcm.css").read_text())
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*.css") if path.name != "lcm.css"]
    assert sorted(imported) == sorted(files)


def test_no_template_has_styles_or_scripts_of_its_own():
    wrong = re.compile(r"\sstyle=|<style|<script(?![^>]*\bsrc=)|\son[a-z]+=")
    found = [path.name for path in (ROOT / "templates").rglob("*.html") if wrong.search(path.read_text())]
    assert found == []
