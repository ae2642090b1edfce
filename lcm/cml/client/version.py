"""CML versions that compare as numbers: 2.10 is newer than 2.9."""

from __future__ import annotations

import re
from typing import NamedTuple

_VERSION = re.compile(r"\s*v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?")


class Version(NamedTuple):
    """Major, minor and patch number."""

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def read(cls, text: object) -> Version | None:
        """Parse the version at the start of a text such as 2.9.1+build.7; None if there is none."""
        match = _VERSION.match(text) if isinstance(text, str) else None
        if match is None:
            return None
        return cls(int(match[1]), int(match[2]), int(match[3] or 0))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


# Since this version, one call returns all interfaces of a lab.
BULK_INTERFACES = Version(2, 10)
