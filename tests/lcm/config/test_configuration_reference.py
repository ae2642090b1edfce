"""docs/configuration.md matches the settings."""

from pathlib import Path

import lcm
from lcm.config.reference import settings_reference

REFERENCE = Path(lcm.__file__).parent.parent / "docs" / "configuration.md"


def test_the_reference_is_up_to_date():
    assert REFERENCE.read_text() == settings_reference(), "run manage.py configuration_reference"
