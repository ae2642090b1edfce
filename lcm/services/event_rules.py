"""Create, change and delete the rules that select events for webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput
from lcm.events.catalog import Severity, matching_types
from lcm.events.rule_matching import CONDITIONS
from lcm.models import EventRule
from lcm.services.changelog import apply_changes, log_change, loggable_fields
from lcm.services.validation import clean_and_save, require_reason

MAX_PATTERNS = 50
MAX_PATTERN_LENGTH = 150


def create_rule(*, actor: Actor, now: datetime, **fields: Any) -> EventRule:
    rule = EventRule(**fields, created_at=now)
    _check(rule)
    with transaction.atomic():
        clean_and_save(rule)
        log_change(
            rule,
            actor=actor,
            event="rule.created",
            message=f"rule {rule} created",
            after=loggable_fields(rule),
            now=now,
        )
    return rule


def update_rule(*, rule: EventRule, actor: Actor, now: datetime, **changes: Any) -> EventRule:
    """Change a rule. Deliveries that exist are not affected."""
    with transaction.atomic():
        before, after = apply_changes(rule, changes)
        _check(rule)
        if after:
            clean_and_save(rule)
            log_change(
                rule,
                actor=actor,
                event="rule.updated",
                message=f"rule {rule} updated",
                before=_loggable(before),
                after=_loggable(after),
                now=now,
            )
    return rule


def delete_rule(*, rule: EventRule, reason: str, actor: Actor, now: datetime) -> None:
    """Delete a rule. Its deliveries stay in the delivery log."""
    require_reason(reason)
    with transaction.atomic():
        log_change(
            rule,
            actor=actor,
            event="rule.deleted",
            message=f"rule {rule} deleted",
            reason=reason,
            before=loggable_fields(rule),
            now=now,
        )
        rule.delete()


def _loggable(values: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) if name == "webhook" else value for name, value in values.items()}


def _check(rule: EventRule) -> None:
    errors = {
        name: problem
        for name in ("event_types", *CONDITIONS)
        if (problem := _patterns_problem(getattr(rule, name)))
    }
    if not errors:
        errors |= _unknown_values(rule)
    if errors:
        raise InvalidInput(errors)


def _patterns_problem(patterns: list[str]) -> str:
    if len(patterns) > MAX_PATTERNS:
        return _("Enter at most %(count)s entries.") % {"count": MAX_PATTERNS}
    if any(not each.strip() or len(each) > MAX_PATTERN_LENGTH for each in patterns):
        return _("Each entry must have 1 to %(count)s characters.") % {"count": MAX_PATTERN_LENGTH}
    return ""


def _unknown_values(rule: EventRule) -> dict[str, str]:
    errors = {}
    if not rule.event_types:
        errors["event_types"] = _("Enter at least one event type, for example “session.*”.")
    unmatched = [pattern for pattern in rule.event_types if not matching_types([pattern])]
    if unmatched:
        errors["event_types"] = _("“%(pattern)s” matches no event type.") % {"pattern": unmatched[0]}
    severities = [each for each in rule.severities if each not in list(Severity)]
    if severities:
        errors["severities"] = _("“%(value)s” is not a severity. Enter %(names)s.") % {
            "value": severities[0],
            "names": ", ".join(Severity),
        }
    return errors
