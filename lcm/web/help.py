"""Links to the documentation."""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse

START = "guide.html"


def help_url(page: str = START) -> str:
    """Return the address of a page of the documentation: `first-worker.html#2-pool`."""
    base = settings.CONFIG["DOCUMENTATION_URL"]
    if base:
        return f"{base.rstrip('/')}/{page}"
    path, hash_sign, anchor = page.partition("#")
    return f"{reverse('help', args=[path])}{hash_sign}{anchor}"
