"""The ledger of who held what for how long, and the fair share made of it."""

from fairshare.models.shares import FairShare, FairShareCalculation, FairSharePolicy, Normalisation, Order
from fairshare.models.usage import Allocation, UsageBatch, UsageBucket, UsageCheck, UsageRecord

__all__ = [
    "Allocation",
    "FairShare",
    "FairShareCalculation",
    "FairSharePolicy",
    "Normalisation",
    "Order",
    "UsageBatch",
    "UsageBucket",
    "UsageCheck",
    "UsageRecord",
]
