"""Observation request queries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from lcm.models import LabletSession
from observations.models import ObservationRequest, RequestState


def open_requests(session_ids: Sequence[UUID]) -> dict[UUID, datetime]:
    """Return the open requests of these sessions and when they were made, for controllers."""
    rows = ObservationRequest.objects.filter(
        session_id__in=session_ids, state=RequestState.OPEN, expires_at__gt=timezone.now()
    )
    return dict(rows.values_list("session_id", "requested_at"))


def last_request(session: LabletSession) -> ObservationRequest | None:
    return ObservationRequest.objects.filter(session=session).order_by("-requested_at").first()
