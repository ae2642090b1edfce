"""Usage ledger and fair share."""

from fairshare.models.shares import (
    FairShare,
    FairShareCalculation,
    FairShareOrder,
    FairSharePolicy,
    Normalisation,
)
from fairshare.models.usage import Allocation, UsageBatch, UsageBucket, UsageCheck, UsageRecord

__all__ = [
    "Allocation",
    "FairShare",
    "FairShareCalculation",
    "FairShareOrder",
    "FairSharePolicy",
    "Normalisation",
    "UsageBatch",
    "UsageBucket",
    "UsageCheck",
    "UsageRecord",
]
