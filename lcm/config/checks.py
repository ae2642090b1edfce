"""Django system checks of the configuration."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Error, register

from lcm.web.server.rate_limit import parse_rate


@register()
def check_rates(**kwargs: Any) -> list[Error]:
    errors = []
    for name, text in settings.CONFIG.items():
        if not name.endswith("_RATE"):
            continue
        try:
            parse_rate(text)
        except ValueError as error:
            errors.append(Error(f"{name}: {error}", id="lcm.E001"))
    return errors
