"""Keys that workers got for their boot tokens; revoked with their instances."""

from __future__ import annotations

from datetime import datetime

from lcm.domain.actors import SYSTEM
from lcm.models import ApiToken
from lcm.services.tokens import revoke_token
from scheduling.models import Slot


def revoke_worker_keys(*, slot: Slot, now: datetime) -> None:
    """Revoke the keys of a slot whose instance is gone, including keys that replaced one by rotation."""
    named = ApiToken.objects.filter(name__startswith=key_name(slot, ""), revoked_at=None)
    for token in [token for token in named if token.scope.slot_id == slot.pk]:
        revoke_token(token=token, actor=SYSTEM, now=now, reason=f"the instance of {slot} is gone")


def key_name(slot: Slot, attempt: str) -> str:
    """Return the name of the key that the worker of this launch attempt gets."""
    return f"worker {slot.name} {attempt[:8]}"
