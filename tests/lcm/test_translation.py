"""Texts of pages, forms and errors can be translated."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from observations.arithmetic.impact import risk_of, risk_text
from tests.support.control_plane import ROOT
from tests.support.message_catalog import CATALOG, gettext_folder, update_catalog
from tests.support.untranslated_texts import (
    error_sentences,
    module_findings,
    modules,
    sentences,
    template_findings,
    template_texts,
    templates,
)

pytestmark = [pytest.mark.gettext, pytest.mark.slow]


def test_templates_have_no_text_outside_of_translate_tags():
    assert template_findings(templates()) == []


def test_the_finder_sees_texts_without_gettext():
    """The two tests above can fail."""
    page = '<h2>Port map</h2><input placeholder="Search"><b>{{ name }} is away</b>{% translate "Known" %} GB'
    assert template_texts(page) == ["Port map", "Search", "is away"]
    code = 'text = "Port map", f"{name} is away", _("Not found here")\nTextarea(attrs={"class": "a b"})'
    assert [ast.unparse(node) for node in sentences(ast.parse(code))] == ["'Port map'", "f'{name} is away'"]
    errors = 'log("not shown here")\nraise InvalidInput({"cpu cores": "CPU is missing."})'
    assert [ast.unparse(node) for node in error_sentences(ast.parse(errors))] == ["'CPU is missing.'"]


def test_sentences_of_pages_and_errors_go_through_gettext():
    assert module_findings(modules()) == []


def test_the_catalog_has_all_texts(tmp_path: Path):
    """`make messages` would change nothing."""
    for name in ("manage.py", "lcm", "scheduling", "observations", "fairshare", "templates"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    update_catalog(tmp_path)
    assert (tmp_path / CATALOG).read_text() == (ROOT / CATALOG).read_text(), "run `make messages`"


@pytest.fixture
def in_brackets(tmp_path: Path, settings: Any) -> str:
    """The code of a language in which each text is its English text in brackets."""
    folder = tmp_path / "eo" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    programs = Path(gettext_folder())
    complete, bracketed = tmp_path / "complete.po", tmp_path / "bracketed.po"
    # msgen fills each translation with its English text.
    subprocess.run([programs / "msgen", ROOT / CATALOG, "-o", complete], check=True)
    brackets = [programs / "msgfilter", "--keep-header", "-i", complete, "-o", bracketed]
    subprocess.run([*brackets, "sed", "-z", r"s/^\(.*[^\n]\)\(\n*\)$/[\1]\2/"], check=True)
    subprocess.run([programs / "msgfmt", bracketed, "-o", folder / "django.mo"], check=True)
    settings.LANGUAGES = [("en", "English"), ("eo", "Esperanto")]
    settings.LOCALE_PATHS = [tmp_path]
    return "eo"


def test_pages_and_errors_appear_in_the_language_of_the_browser(in_brackets: str, db: None):
    client = Client(headers={"accept-language": in_brackets})
    page = client.get("/login")
    assert page.headers["Content-Language"] == in_brackets
    assert '<h1 id="login-title">[Sign in]</h1>' in page.text


def test_texts_of_arithmetic_are_translated_with_their_values(in_brackets: str):
    risk = risk_text(risk_of("memory_gb", 2, 42))
    with translation.override(in_brackets):
        shown = risk.translated(translation)
    assert shown == "[[Memory]: 2 of 42 sessions would have run out.]"
    assert str(risk) == "Memory: 2 of 42 sessions would have run out."
