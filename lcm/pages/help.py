"""The documentation: the site built by `make docs`, or the Markdown files that it is built from."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.web.access import role_required

SITE = settings.BASE_DIR / "var" / "site"
SOURCE = settings.BASE_DIR / "docs"


@require_GET
@role_required(Role.VIEWER)
def help_page(request: HttpRequest, path: str) -> HttpResponseBase:
    """Return a file of the site; without a site, the Markdown file of the page as text."""
    found = _file_in(SITE, path)
    if found:
        kind = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
        return HttpResponse(found.read_bytes(), content_type=kind)
    text = _file_in(SOURCE, path.removesuffix(".html") + ".md")
    if text:
        return HttpResponse(text.read_bytes(), content_type="text/plain; charset=utf-8")
    raise Http404(_("There is no page “%(path)s” in the documentation.") % {"path": path})


def _file_in(folder: Path, path: str) -> Path | None:
    """Return the file at this path, unless the path leaves the folder."""
    try:
        file = (folder / path).resolve()
        return file if file.is_relative_to(folder.resolve()) and file.is_file() else None
    except (OSError, ValueError):  # the name is too long, or has a null character
        return None
