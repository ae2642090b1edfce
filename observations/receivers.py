"""Receivers for the signals of sessions and definitions."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.signals import post_save
from django.dispatch import receiver

from lcm.domain.lifecycle import FINAL, SessionStatus
from lcm.events.change_feed import append_session_changes
from lcm.events.signals import (
    definition_revised,
    observation_requested,
    process_heartbeat,
    process_stopped,
    sessions_moved,
)
from lcm.models import ApiToken, DefinitionRevision, LabletDefinition, LabletSession
from observations.models import DefinitionAssessment
from observations.services.assessments import refresh_assessment
from observations.services.drift_reviews import close_drift
from observations.services.outcomes import mark_collected, settle_outcomes
from observations.services.port_drift import delete_leaked_ports, transfer_shown_ports
from observations.services.presence import delete_presence, save_presence
from scheduling.signals import ports_going_free


@receiver(sessions_moved)
def update_observations(
    sender: Any,
    session_ids: list[UUID],
    old: SessionStatus,
    new: SessionStatus,
    now: datetime,
    lab_removed: bool,
    **kwargs: Any,
) -> None:
    """Count sessions that collect or stop while running; delete leaked ports when the lab is gone."""
    if new == SessionStatus.COLLECTING or (old, new) == (SessionStatus.RUNNING, SessionStatus.STOPPING):
        mark_collected(session_ids=session_ids, now=now)
    elif new == SessionStatus.STOPPING:
        settle_outcomes(session_ids=session_ids, now=now)
    elif lab_removed and new in FINAL:
        delete_leaked_ports(session_ids)
    if old == SessionStatus.STOPPING:
        close_drift(session_ids)


@receiver(ports_going_free)
def transfer_ports(sender: Any, session_ids: list[UUID], **kwargs: Any) -> None:
    """Assign ports of ended labs to running labs that use them."""
    transfer_shown_ports(session_ids)


@receiver(observation_requested)
def notify_controllers(sender: Any, session: LabletSession, now: datetime, **kwargs: Any) -> None:
    """Notify the session's controller, through its watch, that an observation was requested."""
    append_session_changes([session.pk], now=now)


@receiver(process_heartbeat)
def record_presence(
    sender: Any,
    kind: str,
    name: str,
    address: str,
    token: ApiToken | None,
    now: datetime,
    clock_skew: Decimal | None = None,
    **kwargs: Any,
) -> None:
    save_presence(kind=kind, name=name, address=address, token=token, clock_skew=clock_skew, now=now)


@receiver(process_stopped)
def remove_presence(
    sender: Any, kind: str, name: str, token: ApiToken | None, now: datetime, **kwargs: Any
) -> None:
    delete_presence(kind=kind, name=name, token=token, now=now)


@receiver(definition_revised)
def reassess_definition(
    sender: Any, definition: LabletDefinition, revision: DefinitionRevision, now: datetime, **kwargs: Any
) -> None:
    """Reassess after the commit: recording locks assessment, then definition; a revision the reverse."""
    transaction.on_commit(lambda: _refresh(definition.pk, now), robust=True)


def _refresh(definition_id: UUID, now: datetime) -> None:
    refresh_assessment(definition=LabletDefinition.objects.get(pk=definition_id), now=now)


@receiver(post_save, sender=LabletDefinition)
def create_assessment(sender: Any, instance: LabletDefinition, created: bool, **kwargs: Any) -> None:
    """Create an assessment with every definition, so that lists can be sorted by it."""
    if created:
        DefinitionAssessment.objects.create(definition=instance, epoch=instance.topology_hash)
