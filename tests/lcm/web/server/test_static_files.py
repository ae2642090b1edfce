"""Static files under DEBUG: cached by browsers until they change."""

from __future__ import annotations

import os

import pytest
from django.contrib.staticfiles import finders
from django.http import HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

from lcm.web.server.static_files import VersionedStorage


@pytest.fixture
def a_file(tmp_path, settings):
    settings.STATICFILES_DIRS = [tmp_path]
    settings.DEBUG = settings.WHITENOISE_AUTOREFRESH = settings.WHITENOISE_USE_FINDERS = True
    settings.WHITENOISE_MAX_AGE = 3600
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


def test_files_are_served_uncollected_and_cached(a_file, rf, db):
    serve = WhiteNoiseMiddleware(lambda _: HttpResponse(status=404))
    response = serve(rf.get(VersionedStorage().url("notes.js")))
    assert (response.status_code, response.getvalue()) == (200, b"'one'")
    assert response["Cache-Control"] == "max-age=3600, public"
    assert serve(rf.get("/static/not-there.js?v=1")).status_code == 404
