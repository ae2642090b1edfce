"""FilterSets of the fair-share lists, for pages and API."""

from __future__ import annotations

import django_filters as df
from django.utils.translation import gettext_lazy as _

from fairshare.models.levels import Level
from lcm.web.filters import ChoicesFilter
from scheduling.filters import PoolChoices


class UsageBucketFilter(df.FilterSet):
    pool = df.CharFilter(label=_("Pool"), max_length=63)
    level = ChoicesFilter(choices=Level.choices, label=_("Level"))
    subject = df.UUIDFilter(field_name="subject_id", label=_("Subject"))
    parent = df.UUIDFilter(field_name="parent_id", label=_("Parent"))
    day_from = df.DateFilter(field_name="day", lookup_expr="gte", label=_("From"))
    day_to = df.DateFilter(field_name="day", lookup_expr="lte", label=_("To"))


class FairShareFilter(PoolChoices):
    level = ChoicesFilter(choices=Level.choices, label=_("Level"))
    subject = df.UUIDFilter(field_name="subject_id", label=_("Subject"))
    parent = df.UUIDFilter(field_name="parent_id", label=_("Parent"))
