"""System checks of the observation settings."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Error, register

from observations.livestats.prometheus_settings import problems


@register()
def check_prometheus_settings(**kwargs: Any) -> list[Error]:
    return [Error(problem, id="observations.E001") for problem in problems(settings.CONFIG)]
