"""Events about fair share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from pydantic import Field

from fairshare.models import FairShare, FairSharePolicy, UsageCheck
from lcm.events.catalog import EventData, EventSubject, EventType, Severity


class FairShareData(EventData):
    """Data of an event about the fair share of a pool."""

    pool: str | None = Field(default=None, examples=["cml-eu"])


def _policies(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = FairSharePolicy.objects.filter(pk__in=ids).order_by().values_list("pk", "pool__name")
    return {str(key): {"pool": name} for key, name in rows}


def _shares(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = FairShare.objects.filter(pk__in=ids).order_by().values_list("pk", "pool__name")
    return {str(key): {"pool": name} for key, name in rows}


class UsageCheckData(EventData):
    """Data of an event about a comparison of usage buckets with their records."""

    first_day: date | None = Field(default=None, examples=["2026-02-03"])
    last_day: date | None = Field(default=None, examples=["2026-03-02"])
    difference_count: int | None = Field(default=None, description="Buckets that differ.", examples=[2])


def _checks(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = UsageCheck.objects.filter(pk__in=ids).order_by()
    return {
        str(row["pk"]): {name: row[name] for name in ("first_day", "last_day", "difference_count")}
        for row in rows.values("pk", "first_day", "last_day", "difference_count")
    }


def fair_share_url(key: str) -> str:
    return reverse("fair_share")


_CHECK = EventSubject("usagecheck", UsageCheckData, _checks, fair_share_url)

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
    EventType(
        "usage.mismatch_detected", _("Usage mismatch"),
        _("The daily check found usage buckets that differ from the sum of their records."), _CHECK,
        Severity.CRITICAL,
        after={"differences": ["2026-03-01 cml-eu user 4f2c9a: cpu_cores 12 in the bucket, 10 in records"]},
    ),
    EventType(
        "usage.mismatch_cleared", _("Usage matches again"),
        _("All checked usage buckets equal the sum of their records again."), _CHECK,
    ),
)  # fmt: skip
