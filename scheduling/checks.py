"""System checks: warn about installed plugins and observers that cannot be used."""

from __future__ import annotations

from typing import Any

from django.core.checks import Warning, register

from scheduling.coordination.coordinator import coordinator
from scheduling.placement.framework.plugin import rejected_plugins


@register()
def check_entry_points(**kwargs: Any) -> list[Warning]:
    plugins = [
        Warning(f"The plugin “{name}” cannot be used: {problem}", id="scheduling.W001")
        for name, problem in rejected_plugins().items()
    ]
    observers = [
        Warning(f"The observer “{name}” cannot be used: {problem}", id="scheduling.W002")
        for name, problem in coordinator.rejected.items()
    ]
    return plugins + observers
