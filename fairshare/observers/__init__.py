"""What fair share observes, one observer a file."""

from fairshare.observers.aggregation import UsageAggregationObserver
from fairshare.observers.calculation import FairShareCalculationObserver
from fairshare.observers.recording import UsageRecordObserver

__all__ = ["FairShareCalculationObserver", "UsageAggregationObserver", "UsageRecordObserver"]
