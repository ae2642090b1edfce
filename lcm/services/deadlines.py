"""Events that time alone causes: sessions that end soon, and tokens that expire soon.

The row of the object records that its event was written, in the same transaction. So each event is written
once, whether several workers look for it at the same time or one of them is killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Model, Q

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import ApiToken, ChangeLog, LabletSession
from lcm.services.changelog import build_entry, log_changes

BATCH = 500
# Sessions without a slot expire instead.
ANNOUNCED = (S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING)
TOKEN_NOTICE = timedelta(days=7)


def announce_ending_sessions(*, now: datetime) -> int:
    """Log the sessions that end soon, each once for each end; return how many."""
    due = LabletSession.objects.filter(
        Q(announced_end=None) | Q(announced_end__lt=F("ends_at")),
        status__in=ANNOUNCED,
        ends_at__gt=now,
        ends_at__lte=now + timedelta(seconds=settings.CONFIG["ENDING_SOON"]),
    )
    with transaction.atomic():
        # A row that another transaction changes now is found by the next run.
        rows = list(due.select_for_update(skip_locked=True).order_by("ends_at", "pk")[:BATCH])
        if not rows:
            return 0
        LabletSession.objects.filter(pk__in=[row.pk for row in rows]).update(announced_end=F("ends_at"))
        log_changes(
            _entry(row, "session.ending_soon", f"{row} ends", {"ends_at": row.ends_at}, now) for row in rows
        )
    return len(rows)


def announce_expiring_tokens(*, now: datetime) -> int:
    """Log the tokens that expire in 7 days, each once; return how many.

    Tokens with a shorter lifetime are not announced.
    """
    due = ApiToken.objects.filter(
        revoked_at=None,
        expiry_announced_at=None,
        expires_at__gt=now,
        expires_at__lte=now + TOKEN_NOTICE,
        created_at__lt=F("expires_at") - TOKEN_NOTICE,
    )
    with transaction.atomic():
        rows = list(due.select_for_update(skip_locked=True).order_by("expires_at", "pk")[:BATCH])
        if not rows:
            return 0
        ApiToken.objects.filter(pk__in=[row.pk for row in rows]).update(expiry_announced_at=now)
        log_changes(
            _entry(row, "token.expiring", f"token {row} expires", {"expires_at": row.expires_at}, now)
            for row in rows
        )
    return len(rows)


def _entry(row: Model, event: str, text: str, end: Mapping[str, datetime], now: datetime) -> ChangeLog:
    (moment,) = end.values()
    message = f"{text} at {moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return build_entry(row, actor=SYSTEM, event=event, message=message, after=end, now=now)
