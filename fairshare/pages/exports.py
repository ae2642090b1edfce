"""Columns of the share and usage exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.translation import ngettext_lazy

from fairshare import filters
from fairshare.arithmetic.units import HOUR_NAMES, LABELS, RESOURCES, hours
from fairshare.models import FairShare, UsageBucket
from fairshare.selectors.shares import shares
from lcm.web.list_page import Column, ListPage
from lcm.web.wording import Plural


def _hours_of(name: str) -> Callable[[UsageBucket], float]:
    return lambda row: round(hours(getattr(row, name)), 6)


def _shown(name: str) -> Callable[[FairShare], Any]:
    return lambda row: getattr(row, name)


SHARES = ListPage(
    title="Shares",
    export_name="shares",
    counted=Plural(ngettext_lazy("%(count)s share", "%(count)s shares")),
    search_label="Search shares",
    no_match_title="No share matches",
    empty_title="No shares yet",
    rows=shares,
    filterset=filters.FairShareFilter,
    columns=[
        Column("Pool", lambda row: row.pool.name),
        Column("Level", lambda row: row.level),
        Column("Name", lambda row: row.name),
        Column("Parent name", lambda row: row.parent_name),
        Column("Subject id", lambda row: str(row.subject_id)),
        Column("Parent id", lambda row: str(row.parent_id)),
        Column("Weight", lambda row: row.own_weight),
        *(
            Column(name.replace("_", " ").capitalize(), _shown(name))
            for name in (
                "effective_weight",
                "share",
                "norm_share",
                "cpu_hours",
                "memory_hours",
                "storage_hours",
                "gpu_hours",
                "usage",
                "actual_usage",
                "effective_usage",
                "factor",
                "rank",
            )
        ),
    ],
    row_template="",
    default_sort="pk",
    search_hint="",
    icon="chart-pie",
    empty_hint="",
)

BUCKETS = ListPage(
    title="Usage",
    export_name="usage-buckets",
    counted=Plural(ngettext_lazy("%(count)s usage bucket", "%(count)s usage buckets")),
    search_label="Search usage buckets",
    no_match_title="No usage bucket matches",
    empty_title="No usage buckets yet",
    rows=UsageBucket.objects.all,
    filterset=filters.UsageBucketFilter,
    columns=[
        Column("Day", lambda row: row.day),
        Column("Pool", lambda row: row.pool),
        Column("Level", lambda row: row.level),
        Column("Name", lambda row: row.name),
        Column("Parent name", lambda row: row.parent_name),
        Column("Subject id", lambda row: str(row.subject_id)),
        Column("Parent id", lambda row: str(row.parent_id)),
        *(Column(f"{LABELS[name]} {HOUR_NAMES[name]}", _hours_of(name), numeric=True) for name in RESOURCES),
    ],
    row_template="",
    default_sort="-day",
    search_hint="",
    icon="chart-bar",
    empty_hint="",
)
