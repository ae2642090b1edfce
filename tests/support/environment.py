"""The environment that tests give to what they start."""

import os

from lcm.config.environment import GROUPS

SETTINGS = frozenset(setting.name for group in GROUPS.values() for setting in group)


def clean_environment(**settings: str | None) -> dict[str, str]:
    """Our environment with these settings of LCM and none of the developer's own."""
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    given = {name: value for name, value in settings.items() if value is not None}
    return {**kept, "SECRET_KEY": "test-" + "x" * 60, **given}
