"""Boot tokens: a new worker exchanges its token once for the key of its controller."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext as _

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import NotFound
from lcm.models import TokenKind
from lcm.models.records import POOL_SCOPE, SLOT_SCOPE
from lcm.services.changelog import log_change
from lcm.services.tokens import create_token
from scheduling.capacity.launcher import boot_token
from scheduling.models import LIVE, AttemptOutcome, LaunchAttempt, Slot
from scheduling.services.worker_keys import key_name


@dataclass(frozen=True)
class BootKey:
    """The key that a worker gets for its boot token; shown once."""

    slot: Slot
    key: str
    expires_at: datetime


def redeem_boot_token(*, slot_id: UUID, token: str, now: datetime) -> BootKey:
    """Exchange the token of the newest launch of a slot for a key to that slot alone; works once."""
    attempt = (
        LaunchAttempt.objects.filter(
            slot_id=slot_id, outcome__in=(AttemptOutcome.OPEN, AttemptOutcome.LAUNCHED)
        )
        .order_by("-requested_at", "-pk")
        .first()
    )
    # No lock yet: the endpoint is public, and a wrong token must not block anything.
    if attempt is None or attempt.redeemed_at or not constant_time_compare(boot_token(attempt), token):
        raise NotFound(_("This boot token is unknown, used or expired."))
    with transaction.atomic():
        # Every service that ends the instance updates this row first and then revokes the keys of the slot.
        slot = Slot.objects.select_for_update().filter(pk=slot_id, state__in=LIVE).first()
        unredeemed = LaunchAttempt.objects.filter(pk=attempt.pk, redeemed_at=None)
        if slot is None or not unredeemed.update(redeemed_at=now):
            raise NotFound(_("This boot token is unknown, used or expired."))
        name = key_name(slot, attempt.token)
        expires_at = now + timedelta(days=settings.CONFIG["TOKEN_DAYS"])
        scopes = [f"{POOL_SCOPE}{slot.pool.name}", f"{SLOT_SCOPE}{slot.pk}"]
        api_token, key = create_token(
            name=name, kind=TokenKind.CONTROLLER, scopes=scopes, expires_at=expires_at, actor=SYSTEM, now=now
        )
        LaunchAttempt.objects.filter(pk=attempt.pk).update(api_token=api_token)
        message = f"the worker of {slot} redeemed its boot token"
        log_change(slot, actor=SYSTEM, event="slot.boot_token_created", message=message, now=now)
    return BootKey(slot, key, expires_at)
