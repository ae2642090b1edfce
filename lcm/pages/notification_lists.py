"""Configuration of the lists of webhooks, rules and deliveries."""

from __future__ import annotations

from django.utils import timezone
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from lcm.domain.roles import Role
from lcm.models import Cause, Channel, Delivery, EventRule
from lcm.selectors import deliveries
from lcm.web.delivery_filters import DeliveryFilter, RuleFilter, WebhookFilter
from lcm.web.list_columns import Column
from lcm.web.list_page import BulkAction, ListPage, PageAction
from lcm.web.wording import Plural, duration_text

_PENDING = Plural(ngettext_lazy("**%(count)s pending.**", "**%(count)s pending.**"))
_LOG = PageAction(_("Delivery log"), "delivery_list", Role.ADMIN, "inbox-stack")
_RULES = PageAction(_("Rules"), "rule_list", Role.ADMIN, "funnel")
_WEBHOOKS = PageAction(_("Webhooks"), "webhook_list", Role.ADMIN, "link")
_TYPES = PageAction(_("Event types"), "event_type_list", Role.VIEWER, "tag")


def _queue_lead() -> str:
    count, oldest = deliveries.queue_length()
    if oldest is None:
        return gettext("**0 pending.** LCM keeps deliveries for 30 days.")
    age = duration_text(timezone.now() - oldest)
    return _PENDING.text(count) + " " + gettext("The oldest has waited for %(age)s.") % {"age": age}


def _conditions(rule: EventRule) -> str:
    lists = (rule.pools, rule.definitions, rule.domains, rule.projects, rule.severities)
    return ", ".join(each for values in lists for each in values)


def _targets(rule: EventRule) -> str:
    if rule.channel == Channel.WEBHOOK and rule.webhook:
        return rule.webhook.name
    return ", ".join(rule.recipients)


def _reason(delivery: Delivery) -> str:
    """Return the rule, or what the recipient has to do with the object."""
    if delivery.rule:
        return delivery.rule.name
    return "" if delivery.cause == Cause.RULE else str(delivery.get_cause_display())


DELIVERIES = ListPage(
    title=_("Delivery log"),
    export_name="deliveries",
    counted=Plural(ngettext_lazy("%(count)s delivery", "%(count)s deliveries")),
    search_label=_("Search deliveries"),
    no_match_title=_("No delivery matches"),
    empty_title=_("No deliveries yet"),
    rows=deliveries.deliveries,
    filterset=DeliveryFilter,
    columns=[
        Column(_("Delivery"), lambda row: row.type, export_label=_("Event type"), cell="delivery"),
        Column(_("State"), lambda row: row.get_state_display(), cell="state", phone="side"),
        Column(_("Channel"), lambda row: row.get_channel_display()),
        Column(_("To"), lambda row: row.target, cell="target", phone="below"),
        Column(_("Because of"), _reason),
        Column(_("Attempts"), lambda row: row.attempt_count, numeric=True),
        Column(_("Next attempt"), lambda row: row.next_attempt_at, numeric=True),
        Column(_("Created"), lambda row: row.created_at, sort="-created_at", numeric=True, phone="end"),
    ],
    cells="notifications/cells.html",
    default_sort="-created_at",
    search_hint=_("Event type, error, recipient"),
    icon="bell",
    empty_hint=_(
        "Events that match a rule or concern a person appear here with each attempt. "
        "Create a rule to send events elsewhere."
    ),
    lead=_queue_lead,
    actions=[_TYPES, _RULES, _WEBHOOKS],
    bulk=[BulkAction(_("Retry…"), "delivery_bulk_retry", Role.ADMIN)],
)
RULES = ListPage(
    title=_("Rules"),
    export_name="event-rules",
    counted=Plural(ngettext_lazy("%(count)s rule", "%(count)s rules")),
    search_label=_("Search rules"),
    no_match_title=_("No rule matches"),
    empty_title=_("No rules yet"),
    rows=deliveries.rules,
    filterset=RuleFilter,
    columns=[
        Column(_("Rule"), lambda row: row.name, sort="name", cell="rule"),
        Column(_("State"), lambda row: "enabled" if row.enabled else "off", cell="rule_state", phone="side"),
        Column(_("Event types"), lambda row: ", ".join(row.event_types), css="wide", phone="below"),
        Column(_("Conditions"), _conditions),
        Column(_("Channel"), lambda row: row.get_channel_display()),
        Column(_("To"), _targets, cell="rule_targets", phone="below"),
        Column(_("Created"), lambda row: row.created_at, sort="-created_at", numeric=True, phone="end"),
    ],
    cells="notifications/cells.html",
    actions_cell="notifications/cells.html#rule_actions",
    row_actions=Role.ADMIN,
    default_sort="name",
    search_hint=_("Name, webhook"),
    icon="funnel",
    empty_hint=_("A rule selects the events that LCM sends to a webhook, by e-mail or to inboxes."),
    actions=[
        _TYPES,
        _LOG,
        _WEBHOOKS,
        PageAction(_("New rule"), "rule_create", Role.ADMIN, "plus", primary=True),
    ],
)
WEBHOOKS = ListPage(
    title=_("Webhooks"),
    export_name="webhooks",
    counted=Plural(ngettext_lazy("%(count)s webhook", "%(count)s webhooks")),
    search_label=_("Search webhooks"),
    no_match_title=_("No webhook matches"),
    empty_title=_("No webhooks yet"),
    rows=deliveries.webhooks,
    filterset=WebhookFilter,
    columns=[
        Column(_("Webhook"), lambda row: row.name, sort="name", cell="webhook_name"),
        Column(_("State"), lambda row: row.state, cell="webhook_state", phone="side"),
        Column(_("Server"), lambda row: row.origin, phone="below"),
        Column(_("Format"), lambda row: row.get_format_display()),
        Column(_("Owner"), lambda row: row.owner.username if row.owner else ""),
        Column(_("Created"), lambda row: row.created_at, sort="-created_at", numeric=True, phone="end"),
    ],
    cells="notifications/cells.html",
    default_sort="name",
    search_hint=_("Name, URL"),
    icon="link",
    empty_hint=_("A webhook is an HTTP endpoint that receives events."),
    actions=[_LOG, _RULES, PageAction(_("New webhook"), "webhook_create", Role.ADMIN, "plus", primary=True)],
)
