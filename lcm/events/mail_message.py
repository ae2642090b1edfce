"""E-mails about events: text and HTML, with a link to stop personal e-mail."""

from __future__ import annotations

import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID, uuid5

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.core.signing import BadSignature, Signer
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from lcm.events.catalog import TYPE_PREFIX, event_types
from lcm.models import PERSONAL, Delivery

_SIGNER = "lcm.unsubscribe"


@dataclass(frozen=True)
class MailEvent:
    """An event in an e-mail."""

    title: str
    name: str
    message: str
    reason: str
    url: str
    at: datetime


def mail_message(deliveries: Sequence[Delivery]) -> EmailMultiAlternatives:
    """Return one e-mail with the events of deliveries that have the same recipient, rule and cause."""
    first = deliveries[0]
    with timezone.override(_time_zone(first)):
        return _message(deliveries, [_event(each) for each in deliveries])


def _message(deliveries: Sequence[Delivery], events: Sequence[MailEvent]) -> EmailMultiAlternatives:
    first = deliveries[0]
    headers = {
        "Message-ID": _message_id(deliveries),
        "Auto-Submitted": "auto-generated",
    }
    context = {"events": events, "first": first, "is_test": first.event is None}
    if first.cause in PERSONAL and first.recipient_id:
        url = unsubscribe_url(first.recipient_id)
        headers |= {"List-Unsubscribe": f"<{url}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
        context |= {"unsubscribe": url, "settings": _absolute(reverse("notification_settings"))}
    message = EmailMultiAlternatives(
        _subject(first, events),
        render_to_string("notifications/mail.txt", context),
        to=[first.address],
        headers=headers,
    )
    message.attach_alternative(render_to_string("notifications/mail.html", context), "text/html")
    return message


def _message_id(deliveries: Sequence[Delivery]) -> str:
    """Return the same id for the same deliveries, so that mail systems can drop a repetition of them only."""
    key = uuid5(deliveries[0].pk, " ".join(str(each.pk) for each in deliveries[1:]))
    return f"<{key}@{urlsplit(settings.CONFIG['PUBLIC_URL']).hostname or 'lcm'}>"


def _subject(first: Delivery, events: Sequence[MailEvent]) -> str:
    text = f"{events[0].title}: {events[0].name}"
    if len(events) > 1:
        text = ngettext("%(count)s event", "%(count)s events", len(events)) % {"count": len(events)}
        if first.rule:
            text = f"{text}: {first.rule.name}"
    text = f"[LCM] {text}" if first.event else f"[LCM] {_('Test')}: {text}"
    return " ".join(text.split())[:200]


def _event(delivery: Delivery) -> MailEvent:
    event = delivery.cloud_event
    data = event["data"]
    kind = event_types().get(event["type"].removeprefix(TYPE_PREFIX))
    return MailEvent(
        title=str(kind.title) if kind else delivery.type,
        name=data["name"],
        message=data["message"],
        reason=data["reason"],
        url=data["url"] or "",
        at=timezone.localtime(datetime.fromisoformat(event["time"])),
    )


def _time_zone(delivery: Delivery) -> zoneinfo.ZoneInfo:
    name = delivery.recipient.time_zone if delivery.recipient else ""
    return zoneinfo.ZoneInfo(name or settings.TIME_ZONE)


def unsubscribe_url(user_id: UUID) -> str:
    token = Signer(salt=_SIGNER).sign_object(str(user_id))
    return _absolute(reverse("unsubscribe", args=[token]))


def user_of_token(token: str) -> UUID | None:
    """Return the id of the person whose link contains the token; None if LCM did not sign it."""
    try:
        return UUID(Signer(salt=_SIGNER).unsign_object(token))
    except (BadSignature, ValueError, TypeError, AttributeError):
        return None


def _absolute(path: str) -> str:
    return f"{settings.CONFIG['PUBLIC_URL']}{path}"
