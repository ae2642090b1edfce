"""The documentation has no broken links and loads nothing from another origin."""

import re
from pathlib import Path

import pytest
from mkdocs.exceptions import Abort

from tests.docs.site import build_site, is_broken, links_of
from tests.support.control_plane import ROOT

LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?((?:https?:)?//[^\s\">]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site"))


def test_every_page_is_built(site):
    pages = {page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")}
    built = {page.relative_to(site).with_suffix(".md") for page in site.rglob("*.html")}
    assert {page.with_stem("index") if page.stem == "README" else page for page in pages} <= built


def test_nothing_is_loaded_from_another_origin(site):
    found = {page.name: LOADED.findall(page.read_text()) for page in site.rglob("*.html")}
    assert {name: addresses for name, addresses in found.items() if addresses} == {}


def test_images_are_small():
    pictures = (ROOT / "docs" / "images" / "guide").glob("*.png")
    assert {each.name for each in pictures if each.stat().st_size > 220_000} == set()


def test_every_image_of_the_guide_is_used():
    shown = re.findall(r"images/guide/([\w-]+\.png)", (ROOT / "docs" / "guide.md").read_text())
    assert set(shown) == {picture.name for picture in (ROOT / "docs" / "images" / "guide").iterdir()}


@pytest.mark.parametrize(
    "text", ["[gone](gone.md)", "[part](index.md#gone)", "![gone](images/gone.png)", "[up](../README.md)"]
)
def test_a_broken_link_fails_the_build(tmp_path, text):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(f"# Here\n\n{text}\n")
    with pytest.raises(Abort):
        build_site(tmp_path / "site", docs, nav=[{"Here": "index.md"}], extra_css=[])


def test_no_list_contains_a_code_block():
    """MkDocs renders a fence in a list as plain text."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    assert [page.name for page in pages if re.search(r"^ +```", page.read_text(), re.MULTILINE)] == []


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_pages_outside_the_site_have_no_broken_links(name):
    page = ROOT / name
    assert [link for link in links_of(page) if is_broken(page, link)] == []


def test_the_link_check_detects_a_broken_link(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A head\n\n[a](#a-head) [b](#gone) [c](gone.md) [d](page.md#a-head)\n\n`[e](no.md)`\n")
    assert [link for link in links_of(page) if is_broken(page, link)] == ["#gone", "gone.md"]
