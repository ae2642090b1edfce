from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FairShareConfig(AppConfig):
    name = "fairshare"
    verbose_name = "Fair share"

    def ready(self) -> None:
        from fairshare.metrics import usage_figures
        from fairshare.observers import (
            FairShareCalculationObserver,
            UsageAggregationObserver,
            UsageRecordObserver,
        )
        from fairshare.selectors.level_factors import level_factors_of, pool_level_factors
        from fairshare.services import allocations, usage_rebuild  # noqa: F401  (sessions open and close them)
        from lcm.monitoring import metrics
        from lcm.services.jobs import register_job
        from scheduling.coordination.coordinator import register_observer
        from scheduling.selectors.fair_share import register_factor_readers

        for observer in (UsageRecordObserver, UsageAggregationObserver, FairShareCalculationObserver):
            register_observer(observer())
        register_factor_readers(pool_level_factors, level_factors_of)
        metrics.FLEET_COLLECTORS.append(usage_figures)
        register_job(usage_rebuild.KIND, usage_rebuild.rebuild_step)
        _show_on_pages()


def _show_on_pages() -> None:
    """Register the navigation items of fair share and its filter of the change log."""
    from fairshare.pages.overview import usage_attention_items
    from lcm.web import attention, filters, navigation, overview

    panel = overview.LazyPanel("usage", "wide", _("Usage by domain"), "overview_usage")
    overview.register_overview_panel(panel)
    attention.register_attention("usage", usage_attention_items)
    places = ("/fair-share/", "/usage/")
    entry = navigation.NavEntry("fairshare", _("Fair share"), "fair_share", places, "chart-pie")
    navigation.register_entry("Plan", entry, after="capacity")
    filters.OBJECT_TYPES += [("fairsharepolicy", _("Fair-share policy")), ("fairshare", _("Share"))]
