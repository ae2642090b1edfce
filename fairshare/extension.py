"""What fair share adds: usage on shared pages, observers of usage, and the order of the queue."""

from django.utils.translation import gettext_lazy as _

from fairshare.event_types import EVENT_TYPES, fair_share_url
from fairshare.metrics import usage_figures
from fairshare.observers import FairShareCalculationObserver, UsageAggregationObserver, UsageRecordObserver
from fairshare.pages.overview import usage_attention_items
from fairshare.periodic import specs
from fairshare.selectors.level_factors import level_factors_of, pool_level_factors
from fairshare.services import usage_rebuild
from fairshare.services.allocations import update_allocations
from lcm.web.navigation import NavEntry
from lcm.web.object_links import ObjectKind
from lcm.web.overview import LazyPanel
from scheduling.extensions import SchedulingExtension

EXTENSION = SchedulingExtension(
    navigation=(
        NavEntry(
            "fairshare",
            _("Fair share"),
            "fair_share",
            ("/fair-share/", "/usage/"),
            "chart-pie",
            group="Plan",
            after="capacity",
            shortcut="f",
        ),
    ),
    overview=(LazyPanel("usage", "wide", _("Usage by domain"), "overview_usage"),),
    attention=(usage_attention_items,),
    objects={
        "fairsharepolicy": ObjectKind(_("Fair-share policy")),
        "fairshare": ObjectKind(_("Share")),
        "usagecheck": ObjectKind(_("Usage check"), fair_share_url),
    },
    events=EVENT_TYPES,
    observers=(UsageRecordObserver(), UsageAggregationObserver(), FairShareCalculationObserver()),
    pool_factors=(pool_level_factors,),
    member_factors=(level_factors_of,),
    sessions_moved=(update_allocations,),
    jobs={usage_rebuild.KIND: usage_rebuild.rebuild_step},
    periodic=(specs,),
    metrics=(usage_figures,),
)
