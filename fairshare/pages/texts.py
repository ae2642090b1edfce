"""Summary texts of the fair-share page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fairshare.arithmetic.policy import Policy
from fairshare.arithmetic.units import LABELS
from fairshare.models import FairShareOrder
from fairshare.models.levels import Level
from fairshare.selectors.shares import TreeRow
from lcm.web.wording import count_text

ABOVE = 1.05
# Search results are only a part of the tree, so they allow no statement about the whole.
FOUND_ALONE = "**Search results.** Clear the search to see the whole tree."


def sentence(rows: Sequence[TreeRow], calculated_at: datetime | None, *, used: bool) -> str:
    """Return who is above their share, who has priority, and which branch contributes most.

    `used`: there is usage, whether or not it is part of the calculation yet.
    """
    if calculated_at is None:
        return "**Not calculated yet.** LCM calculates shares periodically and on request."
    domains = [row for row in rows if row.share.level == Level.DOMAIN]
    if not any(row.share.usage for row in domains):
        if used:
            return "**Usage is not counted yet.** Until then everyone has factor 1."
        return "**No usage in the window.** Everyone has factor 1."
    above = [row.name for row in domains if row.times_share > ABOVE]
    others = [row.name for row in domains if row.times_share <= ABOVE]
    if not above or not others:
        return "**Every domain is near its share.**"
    verb, go = ("is", "their") if len(above) > 1 else ("is", "its")
    verb = "are" if len(above) > 1 else verb
    first = f"**{listed(above)} {verb} above {go} share**, so {listed(others)} "
    first += f"{'goes' if len(others) == 1 else 'go'} first within a priority."
    projects = [row for row in rows if row.share.level == Level.PROJECT and row.times_share > ABOVE]
    if projects:
        most = max(projects, key=lambda row: row.share.actual_usage)
        first += f" The largest part comes from {most.name}, at {most.times_share:.1f} times its share."
    return first


def policy_sentence(policy: Policy) -> str:
    """Return text such as “**Usage halves every 7 days and counts for 28 days.**”"""
    half_life = "day" if policy.half_life_days == 1 else f"{policy.half_life_days:g} days"
    return f"**Usage halves every {half_life} and counts for {count_text(policy.lookback_days, 'day')}.**"


def rank_sentence(policy: Policy) -> str:
    """Return how rank is determined."""
    if policy.order == FairShareOrder.TREE:
        return (
            "Rank compares the factors of domain, project and person, in this order. "
            "Within a priority, the higher factor goes first."
        )
    return "Rank compares only the person's factor. Within a priority, the higher factor goes first."


def listed(names: Sequence[str], most: int = 4) -> str:
    shown = list(names[:most]) + ([count_text(len(names) - most, "other")] if len(names) > most else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def weights_text(policy: Policy) -> tuple[str, str]:
    """Return the resource weights of the policy, and the default ones."""
    own = [
        f"{LABELS[name]} {weight:g}"
        for name, (weight, source) in policy.weight_sources.items()
        if source == "policy"
    ]
    rest = [
        f"{LABELS[name]} {weight:g}"
        for name, (weight, source) in policy.weight_sources.items()
        if source != "policy"
    ]
    return ", ".join(own), ", ".join(rest)
