"""Entry points of installed packages: a broken entry point is reported and skipped."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

logger = logging.getLogger(__name__)


def load_entry_points(group: str, register: Callable[[str, Any], None]) -> dict[str, str]:
    """Register every entry point of the group; return the problems by name."""
    rejected: dict[str, str] = {}
    for point in entry_points(group=group):
        try:
            register(point.name, point.load())
        # A module may end the process while it is imported; that must not stop LCM either.
        except (Exception, SystemExit) as error:
            rejected[point.name] = f"{point.value}: {type(error).__name__}: {error}"[:300]
            logger.exception(
                "entry_point_rejected",
                extra={"group": group, "entry_point": point.name, "value": point.value},
            )
    return rejected


def entry_point_names(group: str) -> set[str]:
    """Return the names of the installed entry points, loaded or not."""
    return entry_points(group=group).names
