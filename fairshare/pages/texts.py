"""Summary texts of the fair-share page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import isinf

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from fairshare.arithmetic.policy import Policy
from fairshare.models import FairShareOrder
from fairshare.models.levels import Level
from fairshare.selectors.shares import TreeRow
from lcm.models.resources import RESOURCE_LABELS
from lcm.web.wording import list_text

ABOVE = 1.05
# Search results are only a part of the tree, so they allow no statement about the whole.
SEARCH_RESULTS_NOTE = _("**Search results.** Clear the search to see the whole tree.")


def sentence(rows: Sequence[TreeRow], policy: Policy, calculated_at: datetime | None, *, used: bool) -> str:
    """Return the domains above their share, the domain that goes first, and the project with most usage.

    `used`: there is usage, whether or not it is part of the calculation yet.
    """
    if calculated_at is None:
        return gettext("**Not calculated yet.** LCM calculates shares periodically and on request.")
    domains = [row for row in rows if row.share.level == Level.DOMAIN]
    if not any(row.share.usage for row in domains):
        if used:
            return gettext("**Usage is not counted yet.** Until then everyone has factor 1.")
        return gettext("**No usage in the window.** Everyone has factor 1.")
    above = [row.name for row in domains if row.times_share > ABOVE]
    if not above:
        return gettext("**No domain is above its share.**")
    sentences = [
        ngettext("**{names} is above its share.**", "**{names} are above their share.**", len(above)).format(
            names=listed(above)
        )
    ]
    if first := _first_in_queue(domains, policy):
        text = ngettext(
            "Within a priority, {names} goes first.", "Within a priority, {names} go first.", len(first)
        )
        sentences.append(text.format(names=listed(first)))
    projects = [row for row in rows if row.share.level == Level.PROJECT and row.times_share > ABOVE]
    if projects:
        most = max(projects, key=lambda row: row.share.actual_usage)
        if isinf(most.times_share):
            text = gettext("Project %(name)s contributes most and has no share.")
        else:
            text = gettext("Project %(name)s contributes most: %(times)s times its share.")
        sentences.append(text % {"name": most.name, "times": f"{most.times_share:.1f}"})
    return " ".join(sentences)


def _first_in_queue(domains: Sequence[TreeRow], policy: Policy) -> list[str]:
    """Return the domains of the first rank; empty if the queue does not compare the domains.

    The classic order compares people only. The projects of a domain with the weight “parent” compete with the
    other domains.
    """
    if policy.order != FairShareOrder.TREE or any(row.share.uses_parent for row in domains):
        return []
    return [row.name for row in domains if row.share.rank == 1 and row.times_share <= ABOVE]


def policy_sentence(policy: Policy) -> str:
    """Return text such as “**Usage has a half-life of 7 days and counts for 28 days.**”"""
    lookback = ngettext("%(count)s day", "%(count)s days", policy.lookback_days)
    return gettext("**Usage has a half-life of %(half_life)s and counts for %(lookback)s.**") % {
        "half_life": half_life_text(policy),
        "lookback": lookback % {"count": f"{policy.lookback_days:,}"},
    }


def half_life_text(policy: Policy) -> str:
    """Return `1 day`, `7 days` or `0.5 days`."""
    days = policy.half_life_days
    return ngettext("%(count)s day", "%(count)s days", 1 if days == 1 else 2) % {"count": f"{days:g}"}


def rank_sentence(policy: Policy) -> str:
    """Return how rank is determined."""
    if policy.order == FairShareOrder.TREE:
        return gettext(
            "Rank compares the factors of domain, project and person, in this order. "
            "Within a priority, the higher factor goes first."
        )
    return gettext("Rank compares only the person's factor. Within a priority, the higher factor goes first.")


def listed(names: Sequence[str], most: int = 4) -> str:
    shown, others = list(names[:most]), len(names) - most
    if others > 0:
        shown.append(ngettext("%(count)s other", "%(count)s others", others) % {"count": f"{others:,}"})
    return list_text(shown)


def weights_text(policy: Policy) -> tuple[str, str]:
    """Return the resource weights of the policy, and the default ones."""
    texts: dict[str, list[str]] = {"policy": [], "default": []}
    for name, (weight, source) in policy.weight_sources.items():
        texts[source].append(f"{RESOURCE_LABELS[name]} {weight:g}")
    return ", ".join(texts["policy"]), ", ".join(texts["default"])
