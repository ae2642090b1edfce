"""A signed cookie that marks a browser in which a person has signed in before.

Wrong passwords from such a browser count against the browser, not its address. Other clients at the same
address, for example behind a proxy, cannot lock the person out with wrong passwords.
"""

from __future__ import annotations

import hashlib
import secrets

from django.core import signing
from django.http import HttpRequest, HttpResponseBase

COOKIE = "lcm_browser"
MAX_AGE = 90 * 24 * 3600


def remember_browser(request: HttpRequest, response: HttpResponseBase, name: str) -> None:
    """Mark this browser as one in which the person has signed in."""
    value = signing.dumps([_hash(name), secrets.token_hex(16)], salt=COOKIE)
    response.set_cookie(
        COOKIE, value, max_age=MAX_AGE, httponly=True, samesite="Lax", secure=request.is_secure()
    )


def known_browser(request: HttpRequest, name: str) -> str:
    """Return the browser's id if this person has signed in with it before, else an empty string."""
    try:
        known, key = signing.loads(request.COOKIES.get(COOKIE, ""), salt=COOKIE, max_age=MAX_AGE)
    except signing.BadSignature:
        return ""
    return str(key) if known == _hash(name) else ""


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
