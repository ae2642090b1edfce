"""Django's e-mail settings from `EMAIL_URL`."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from environ import Env

MAIL_DEFAULTS = {
    "EMAIL_BACKEND": "",
    "EMAIL_HOST": "",
    "EMAIL_PORT": 25,
    "EMAIL_HOST_USER": "",
    "EMAIL_HOST_PASSWORD": "",
    "EMAIL_USE_TLS": False,
    "EMAIL_USE_SSL": False,
    "EMAIL_FILE_PATH": None,
}


def mail_settings(url: str) -> dict[str, Any]:
    """Return Django's e-mail settings for a URL; errors do not repeat it, because it contains a password."""
    problem = "EMAIL_URL must be like smtp+tls://user:password@mail.example.org:587"
    try:
        found: dict[str, Any] = Env.email_url_config(url or "dummymail://")
    except (ValueError, KeyError, ImproperlyConfigured) as error:
        raise ImproperlyConfigured(problem) from error
    if found["EMAIL_BACKEND"].endswith("smtp.EmailBackend") and not found["EMAIL_HOST"]:
        raise ImproperlyConfigured(problem)
    return {name: found.get(name) or default for name, default in MAIL_DEFAULTS.items()}
