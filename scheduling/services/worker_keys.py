"""The keys that workers got for their boot tokens end with their instances."""

from __future__ import annotations

from datetime import datetime

from lcm.actors import SYSTEM
from lcm.models import ApiToken
from lcm.services.tokens import revoke_token
from scheduling.models import Slot


def revoke_worker_keys(*, slot: Slot, now: datetime) -> None:
    """The instance is gone: what its worker was given is worth nothing any more."""
    for token in ApiToken.objects.filter(launch_attempts__slot=slot, revoked_at=None):
        revoke_token(token=token, actor=SYSTEM, now=now, reason=f"the instance of {slot} is gone")
