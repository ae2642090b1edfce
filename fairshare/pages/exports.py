"""Columns of the share and usage exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from fairshare import filters
from fairshare.arithmetic.units import hours
from fairshare.models import FairShare, UsageBucket
from fairshare.selectors.shares import shares
from lcm.domain.resources import RESOURCES
from lcm.models.messages import lazy_text
from lcm.web.list_columns import Column
from lcm.web.list_page import ListPage
from lcm.web.wording import Plural


def _hours_of(name: str) -> Callable[[UsageBucket], float]:
    return lambda row: round(hours(getattr(row, name)), 6)


def _shown(name: str) -> Callable[[FairShare], Any]:
    return lambda row: getattr(row, name)


SHARES = ListPage(
    title=_("Shares"),
    export_name="shares",
    counted=Plural(ngettext_lazy("%(count)s share", "%(count)s shares")),
    search_label=_("Search shares"),
    no_match_title=_("No share matches"),
    empty_title=_("No shares yet"),
    rows=shares,
    filterset=filters.FairShareFilter,
    columns=[
        Column(_("Pool"), lambda row: row.pool.name),
        Column(_("Level"), lambda row: row.level),
        Column(_("Name"), lambda row: row.name),
        Column(_("Parent name"), lambda row: row.parent_name),
        Column(_("Subject ID"), lambda row: str(row.subject_id)),
        Column(_("Parent ID"), lambda row: str(row.parent_id)),
        Column(_("Weight"), lambda row: row.own_weight),
        Column(_("Effective weight"), _shown("effective_weight")),
        Column(_("Share"), _shown("share")),
        Column(_("Norm share"), _shown("norm_share")),
        *(Column(lazy_text(each.hours_label), _shown(f"{each.short}_hours")) for each in RESOURCES),
        Column(_("Usage"), _shown("usage")),
        Column(_("Actual usage"), _shown("actual_usage")),
        Column(_("Effective usage"), _shown("effective_usage")),
        Column(_("Factor"), _shown("factor")),
        Column(_("Rank"), _shown("rank")),
    ],
    default_sort="pk",
    search_hint="",
    icon="chart-pie",
    empty_hint="",
)

BUCKETS = ListPage(
    title=_("Usage"),
    export_name="usage-buckets",
    counted=Plural(ngettext_lazy("%(count)s usage bucket", "%(count)s usage buckets")),
    search_label=_("Search usage buckets"),
    no_match_title=_("No usage bucket matches"),
    empty_title=_("No usage buckets yet"),
    rows=UsageBucket.objects.all,
    filterset=filters.UsageBucketFilter,
    columns=[
        Column(_("Day"), lambda row: row.day),
        Column(_("Pool"), lambda row: row.pool),
        Column(_("Level"), lambda row: row.level),
        Column(_("Name"), lambda row: row.name),
        Column(_("Parent name"), lambda row: row.parent_name),
        Column(_("Subject ID"), lambda row: str(row.subject_id)),
        Column(_("Parent ID"), lambda row: str(row.parent_id)),
        *(
            Column(
                format_lazy("{} {}", lazy_text(each.label), lazy_text(each.hours)),
                _hours_of(each.name),
                numeric=True,
            )
            for each in RESOURCES
        ),
    ],
    default_sort="-day",
    search_hint="",
    icon="chart-bar",
    empty_hint="",
)
