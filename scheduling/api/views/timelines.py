"""API views of the timelines of slots, pools and sessions."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime, timedelta
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from lcm.api.organisation_serializers import ChangeSerializer
from lcm.api.views.base import LcmViewSet
from lcm.domain.access import VIEWER
from lcm.domain.errors import InvalidInput
from lcm.models import ChangeLog, LabletSession
from scheduling.filters import TimelineFilter
from scheduling.models import Pool, Slot
from scheduling.selectors import timelines

LENGTH, LONGEST = timedelta(days=1), timedelta(days=31)


class TimelineViewSet(LcmViewSet[ChangeLog]):
    """Entries of the change log that concern an object, newest first."""

    queryset = ChangeLog.objects.none()
    serializer_class = ChangeSerializer
    filterset_class = TimelineFilter
    sorts = ("-at",)
    access = {"list": VIEWER}

    @abstractmethod
    def timeline(self, pk: str, since: datetime | None, until: datetime) -> timelines.Timeline:
        """Return the timeline of the object from `since`, or else of a default time, to `until`."""

    def list(self, request: Request, pk: str) -> Response:
        form: Any = self.filterset_class(request.query_params, queryset=self.queryset).form
        found = form.cleaned_data if form.is_valid() else {}
        timeline = self.timeline(pk, found.get("since"), found.get("until") or self.now())
        if timeline.is_cut:
            text = _("This time has more than %(count)s sessions. Request a shorter time.")
            raise InvalidInput({"since": text % {"count": f"{timelines.MOST_RESERVATIONS:,}"}})
        page: Any = self.paginate_queryset(self.filter_queryset(timeline.rows))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


def _start(since: datetime | None, until: datetime) -> datetime:
    """Return the start of a window of at most 31 days, by default of one day."""
    if since is not None and until - since > LONGEST:
        raise InvalidInput({"since": _("Request at most %(days)s days.") % {"days": LONGEST.days}})
    try:
        return since or until - LENGTH
    except OverflowError as error:
        raise InvalidInput({"until": _("This time is out of range.")}) from error


@extend_schema(tags=["capacity"])
class SlotTimelineViewSet(TimelineViewSet):
    def timeline(self, pk: str, since: datetime | None, until: datetime) -> timelines.Timeline:
        slot = get_object_or_404(Slot, pk=pk)
        return timelines.slot_timeline(slot, start=_start(since, until), end=until)


@extend_schema(tags=["capacity"])
class PoolTimelineViewSet(TimelineViewSet):
    def timeline(self, pk: str, since: datetime | None, until: datetime) -> timelines.Timeline:
        pool = get_object_or_404(Pool, pk=pk)
        return timelines.pool_timeline(pool, start=_start(since, until), end=until)


@extend_schema(tags=["sessions"])
class SessionTimelineViewSet(TimelineViewSet):
    def timeline(self, pk: str, since: datetime | None, until: datetime) -> timelines.Timeline:
        session = get_object_or_404(LabletSession, pk=pk)
        return timelines.session_timeline(session, start=since or session.created_at, end=until)
