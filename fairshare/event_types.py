"""Events about fair share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _
from pydantic import Field

from fairshare.models import FairShare, FairSharePolicy
from lcm.events.catalog import EventData, EventSubject, EventType


class FairShareData(EventData):
    """Data of an event about the fair share of a pool."""

    pool: str | None = Field(default=None, examples=["cml-eu"])


def _policies(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = FairSharePolicy.objects.filter(pk__in=ids).order_by().values_list("pk", "pool__name")
    return {str(key): {"pool": name} for key, name in rows}


def _shares(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = FairShare.objects.filter(pk__in=ids).order_by().values_list("pk", "pool__name")
    return {str(key): {"pool": name} for key, name in rows}


EVENT_TYPES = (
    EventType(
        "fair_share.policy_changed", _("Fair-share policy changed"),
        _("The rules that order the queue of a pool changed."),
        EventSubject("fairsharepolicy", FairShareData, _policies), after={"half_life_days": 3.0},
    ),
    EventType(
        "fair_share.weight_changed", _("Fair-share weight changed"),
        _("A domain, project or person has another weight."),
        EventSubject("fairshare", FairShareData, _shares), after={"weight": 2.5},
    ),
)  # fmt: skip
