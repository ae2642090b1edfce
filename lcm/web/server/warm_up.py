"""What a web process does before its first request."""

from __future__ import annotations

import gc
from contextlib import suppress

from django.conf import settings
from django.template import TemplateSyntaxError
from django.template.loader import get_template
from django.urls import get_resolver


def warm_up() -> None:
    """Load every page's code and template, then keep all that is loaded out of later collections.

    A look through a hundred and eighty thousand objects that never become garbage takes a tenth of a second,
    in the middle of some request. A request makes thousands of values that go without being looked for.
    """
    get_resolver().reverse_dict  # noqa: B018  (imports the pages of all apps)
    _read_templates()
    gc.collect()
    gc.freeze()
    # Python delays a full collection until the new objects are a quarter of those that the last one found.
    gc.collect()
    # At most 100,000 young objects wait for a collection. With 500,000, objects in reference cycles let the
    # memory of a process grow for half an hour, to twice as much.
    gc.set_threshold(25_000, 4, 10)


def _read_templates() -> None:
    """All of them take less than a tenth of a second; one that is wrong says so on its page."""
    folder = settings.BASE_DIR / "templates"
    for path in folder.rglob("*.html"):
        with suppress(TemplateSyntaxError):
            get_template(str(path.relative_to(folder)))
