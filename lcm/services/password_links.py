"""Links with which people set their password: signed by Django, valid once and for a limited time.

LCM does not store links. A new link, setting the password and signing in end all earlier links of a person.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.events.mail_client import mail_is_configured
from lcm.models import ChangeLog, User
from lcm.services.changelog import build_entry, log_change
from lcm.services.validation import require_reason

logger = logging.getLogger(__name__)


class LinkTokens:
    """Django's tokens with the number of the link in their salt."""

    def make_token(self, user: User) -> str:
        return self._generator(user).make_token(user)

    def check_token(self, user: User | None, token: str | None) -> bool:
        return user is not None and self._generator(user).check_token(user, token)

    def _generator(self, user: User) -> PasswordResetTokenGenerator:
        generator = PasswordResetTokenGenerator()
        generator.key_salt = f"lcm.password-link.{user.password_links}"
        return generator


link_tokens = LinkTokens()


@dataclass(frozen=True)
class PasswordLink:
    """The parts of a link; pages build its URL."""

    user: User
    uid: str
    token: str
    expires_at: datetime

    def entry(self, *, actor: Actor, now: datetime, reason: str = "") -> ChangeLog:
        """Return the unsaved change log entry; it does not contain the link."""
        return build_entry(
            self.user,
            actor=actor,
            event="person.invited",
            message=f"link to set the password of {self.user} created",
            reason=reason,
            after={"expires_at": self.expires_at},
            now=now,
        )


def password_link(user: User, *, now: datetime) -> PasswordLink:
    """Return a new link without logging it."""
    return PasswordLink(
        user=user,
        uid=urlsafe_base64_encode(force_bytes(user.pk)),
        token=link_tokens.make_token(user),
        expires_at=now + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT),
    )


def create_password_link(*, user: User, reason: str, by: User, now: datetime) -> PasswordLink:
    """Create a link for an existing person; earlier links become invalid."""
    require_reason(reason)
    if refusal := password_link_refusal(user=user, by=by):
        raise StateConflict(refusal)
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(password_links=F("password_links") + 1)
        user.refresh_from_db(fields=["password_links", "password", "last_login", "email"])
        link = password_link(user, now=now)
        link.entry(actor=Actor.person(by), now=now, reason=reason).save()
    return link


def password_link_refusal(*, user: User, by: User) -> str:
    """Return why `by` may not create a link for this person; empty if allowed."""
    if user.pk == by.pk:
        return _("Change your own password in your profile.")
    if user.is_superuser and not by.is_superuser:
        return _("Only superusers can change a superuser's account.")
    if not user.is_active:
        return _("The account is closed. Open it first.")
    return ""


def set_password_by_link(*, user: User, new: str, now: datetime) -> None:
    """Set the password of a person who has opened a valid link; only one request succeeds for a link."""
    try:
        validate_password(new, user)
    except ValidationError as error:
        raise InvalidInput({"new": " ".join(error.messages)}) from error
    old = user.password
    user.set_password(new)
    with transaction.atomic():
        unused = User.objects.filter(
            pk=user.pk, password=old, password_links=user.password_links, is_active=True
        )
        if not unused.update(password=user.password):
            raise StateConflict(_("This link has been used or replaced. Ask an Admin for a new one."))
        message = f"password of {user} set by a link"
        log_change(user, actor=Actor.person(user), event="person.password_set", message=message, now=now)


def send_password_link(*, user: User, url: str, expires_at: str) -> bool:
    """Send a link if e-mail is configured and the person has an address; return whether it was sent."""
    if not (mail_is_configured() and user.email):
        return False
    text = _(
        "Hello %(name)s,\n\nset the password of your account “%(user)s” in Lab Cloud Manager:\n\n%(url)s\n\n"
        "The link is valid once, until %(until)s."
    ) % {"name": user.display_name, "user": user.username, "url": url, "until": expires_at}
    try:
        send_mail(_("Set your LCM password"), text, None, [user.email])
    except (SMTPException, OSError) as error:
        logger.warning("password_link_not_sent", extra={"user": user.username, "error": str(error)})
        return False
    return True
