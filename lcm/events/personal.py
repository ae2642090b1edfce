"""Personal notifications: the events that people get without a rule, and their choice of channels."""

from __future__ import annotations

from lcm.events.catalog import event_types
from lcm.models import Channel, User

# Beside the event types a person chooses channels for the events of watched objects.
WATCHED = "watched"
# Events about own sessions and webhooks; types that are not in the catalogue are ignored.
OWN_TYPES = (
    "session.scheduled",
    "session.ready",
    "session.ending_soon",
    "session.ended",
    "session.interrupted",
    "session.requeued",
    "session.expired",
    "session.failed",
    "webhook.disabled",
)
DEFAULTS = {
    Channel.INBOX: frozenset(
        {
            "session.ready",
            "session.ending_soon",
            "session.interrupted",
            "session.failed",
            "webhook.disabled",
            WATCHED,
        }
    ),
    Channel.EMAIL: frozenset({"webhook.disabled"}),
}


def offered_choices() -> list[str]:
    """Return what a person can choose, in the order of pages."""
    return [*(name for name in OWN_TYPES if name in event_types()), WATCHED]


def chosen(person: User, channel: Channel) -> frozenset[str]:
    """Return what a person gets by this channel."""
    stored = person.notification_choices.get(channel)
    return DEFAULTS[channel] if stored is None else frozenset(stored)


def wants(person: User, channel: Channel, name: str) -> bool:
    return name in chosen(person, channel)
