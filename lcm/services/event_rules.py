"""Create, change and delete the rules that select events for webhooks, addresses and inboxes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput
from lcm.domain.roles import GROUPS
from lcm.events.catalog import Severity, matching_types
from lcm.events.mail_client import mail_is_configured
from lcm.events.rule_matching import CONDITIONS
from lcm.models import Channel, EventRule, User
from lcm.selectors.recipients import ROLE_PREFIX, is_address, role_named
from lcm.services.changelog import apply_changes, log_change, loggable_fields
from lcm.services.validation import clean_and_save, require_reason

MAX_PATTERNS = 50
MAX_PATTERN_LENGTH = 150
# Shorter than the age at which the alert about late deliveries fires.
MAX_DIGEST_INTERVAL = timedelta(hours=1)


def create_rule(*, actor: Actor, now: datetime, **fields: Any) -> EventRule:
    rule = EventRule(**fields, created_at=now)
    _drop_other_targets(rule)
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
        _drop_other_targets(rule)
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
    return {name: str(value) if name == "webhook" and value else value for name, value in values.items()}


def _drop_other_targets(rule: EventRule) -> None:
    """Clear the targets of channels that the rule does not use."""
    if rule.channel == Channel.WEBHOOK:
        rule.recipients = []
    else:
        rule.webhook = None


def _check(rule: EventRule) -> None:
    errors = {
        name: problem
        for name in ("event_types", *CONDITIONS, "recipients")
        if (problem := _patterns_problem(getattr(rule, name)))
    }
    if not errors:
        errors |= _unknown_values(rule) | _target_problems(rule)
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


def _target_problems(rule: EventRule) -> dict[str, str]:
    """Return what is wrong with channel, webhook, recipients and digest interval."""
    errors = {}
    if not timedelta(0) <= rule.digest_interval <= MAX_DIGEST_INTERVAL:
        errors["digest_interval"] = _("Enter a time of at most 1 h.")
    if rule.channel == Channel.WEBHOOK:
        return errors if rule.webhook_id else errors | {"webhook": _("Choose a webhook.")}
    if rule.channel == Channel.EMAIL and not mail_is_configured():
        errors["channel"] = _("E-mail is not configured. Set EMAIL_URL first.")
    if not rule.recipients:
        errors["recipients"] = _("Enter at least one recipient.")
    elif problem := _recipients_problem(rule):
        errors["recipients"] = problem
    return errors


def _recipients_problem(rule: EventRule) -> str:
    names = [each for each in rule.recipients if not each.startswith(ROLE_PREFIX)]
    people = set(User.objects.filter(username__in=names).values_list("username", flat=True))
    for recipient in rule.recipients:
        if recipient.startswith(ROLE_PREFIX):
            if not role_named(recipient):
                roles = ", ".join(f"{ROLE_PREFIX}{name}" for name in GROUPS)
                return _("“%(value)s” is not a role. Enter %(names)s.") % {"value": recipient, "names": roles}
        elif recipient not in people:
            if not is_address(recipient):
                return _("There is no person “%(name)s”.") % {"name": recipient}
            if rule.channel == Channel.INBOX:
                return _("“%(address)s” is an e-mail address. An inbox belongs to a person.") % {
                    "address": recipient
                }
    return ""
