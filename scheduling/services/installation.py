"""The installation id, which separates this LCM's instances from others in the same account."""

from __future__ import annotations

from django.db import transaction

from lcm.domain.actors import Actor
from lcm.services.changelog import log_change
from lcm.services.validation import require_reason
from scheduling.models import Installation
from scheduling.models.installation import new_key


def installation_id() -> str:
    """Return the id; created on first use."""
    return Installation.objects.get_or_create(pk=Installation.ONLY)[0].key


def renew_installation(*, reason: str, actor: Actor) -> str:
    """Replace the id, for a copy of a database: existing instances belong to the original."""
    require_reason(reason)
    with transaction.atomic():
        installation, _ = Installation.objects.select_for_update().get_or_create(pk=Installation.ONLY)
        before, installation.key = installation.key, new_key()
        installation.save(update_fields=["key"])
        log_change(
            installation, actor=actor, event="installation.renewed", message="installation id renewed",
            reason=reason, before={"key": before}, after={"key": installation.key},
        )  # fmt: skip
    return installation.key
