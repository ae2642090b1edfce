"""Observers of fair share, one per module."""

from fairshare.observers.fair_share_calculation import FairShareCalculationObserver
from fairshare.observers.usage_aggregation import UsageAggregationObserver
from fairshare.observers.usage_record import UsageRecordObserver

__all__ = ["FairShareCalculationObserver", "UsageAggregationObserver", "UsageRecordObserver"]
