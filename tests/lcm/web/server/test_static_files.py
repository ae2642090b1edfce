"""Static files under DEBUG: cached by browsers until they change."""

from __future__ import annotations

import os

import pytest
from django.contrib.staticfiles import finders
from django.http import HttpResponse

from lcm.web.server.static_files import StaticFilesMiddleware, VersionedStorage


@pytest.fixture
def a_file(tmp_path, settings):
    settings.STATICFILES_DIRS = [tmp_path]
    settings.DEBUG = settings.WHITENOISE_AUTOREFRESH = settings.WHITENOISE_USE_FINDERS = True
    finders.get_finder.cache_clear()
    (tmp_path / "notes.js").write_text("'one'")
    yield tmp_path / "notes.js"
    finders.get_finder.cache_clear()


def test_a_static_url_changes_with_its_file(a_file):
    storage = VersionedStorage()
    first = storage.url("notes.js")
    assert first.startswith("/static/notes.js?v=")
    assert storage.url("notes.js") == first
    os.utime(a_file, ns=(1, 1))
    assert storage.url("notes.js") == "/static/notes.js?v=1"
    assert storage.url("not-there.js") == "/static/not-there.js"


def test_versioned_files_are_cached_and_other_files_revalidated(a_file, rf, db):
    answer = StaticFilesMiddleware(lambda _: HttpResponse(status=404))
    kept = answer(rf.get(VersionedStorage().url("notes.js")))
    assert (kept.status_code, kept.content) == (200, b"'one'")
    assert kept["Cache-Control"] == "max-age=31536000, public, immutable"
    assert answer(rf.get("/static/notes.js"))["Cache-Control"] == "max-age=0, public"
    assert answer(rf.get("/static/not-there.js?v=1")).status_code == 404
