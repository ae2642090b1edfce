"""What must be true of the configuration before LCM starts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Error, register

from lcm.throttling import parse_rate


@register()
def rates_can_be_read(**kwargs: Any) -> list[Error]:
    errors = []
    for name in ("API_RATE", "API_LOGIN_RATE"):
        try:
            parse_rate(settings.CONFIG[name])
        except ValueError as error:
            errors.append(Error(f"{name}: {error}", id="lcm.E001"))
    return errors
