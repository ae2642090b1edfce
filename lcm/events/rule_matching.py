"""Which events a rule selects."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from lcm.events.catalog import EventData, matching_types
from lcm.models import EventRule

# Condition of a rule → field of the event's data.
CONDITIONS = {
    "pools": "pool",
    "definitions": "definition",
    "domains": "domain",
    "projects": "project",
    "severities": "severity",
}


class RuleMatcher:
    """A rule with the types that its patterns select."""

    def __init__(self, rule: EventRule) -> None:
        self.rule = rule
        self.types = frozenset(matching_types(rule.event_types))
        self._conditions = [
            (field, list(patterns)) for name, field in CONDITIONS.items() if (patterns := getattr(rule, name))
        ]

    def matches(self, event: str, data: EventData) -> bool:
        """Return whether type and conditions match; data without a condition's field does not match."""
        return event in self.types and all(
            _matches_any(getattr(data, field, None), patterns) for field, patterns in self._conditions
        )


def _matches_any(value: str | None, patterns: Sequence[str]) -> bool:
    return value is not None and any(value == pattern or fnmatchcase(value, pattern) for pattern in patterns)
