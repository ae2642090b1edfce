"""Environment variables of processes that tests start."""

import os

from lcm.config.reference import describe_settings

SETTINGS = frozenset(setting.name for group in describe_settings().values() for setting in group)


def clean_environment(**settings: str | None) -> dict[str, str]:
    """Return the current environment with only these LCM settings."""
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    overrides = {name: value for name, value in settings.items() if value is not None}
    return {**environment, "SECRET_KEY": "test-" + "x" * 60, **overrides}
