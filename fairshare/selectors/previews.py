"""Previews of policy and weight changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils.translation import gettext as _

from fairshare.arithmetic.policy import Policy
from fairshare.arithmetic.tree import DEPTH, FairShareResult, compared_factors
from fairshare.selectors.subject_names import SubjectName, names_of
from fairshare.selectors.trees import SubjectKey, TreeRules, Weights, key_of, policy_of, trees_of, weights_of
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from scheduling.models import Pool

SHOWN = 50
WAITING = 50_000


@dataclass(frozen=True)
class RankChange:
    """A person whose rank changes."""

    name: str
    parent_name: str
    rank_before: int
    rank_after: int
    factor_before: float
    factor_after: float


@dataclass(frozen=True)
class FairSharePreview:
    """Rank changes, largest first, and the number of waiting sessions that would move."""

    up: list[RankChange]
    down: list[RankChange]
    up_count: int
    down_count: int
    same_count: int
    waiting_moved: int
    waiting: int
    # Results of all subjects, before and after.
    before: Mapping[SubjectKey, FairShareResult]
    after: Mapping[SubjectKey, FairShareResult]

    @property
    def text(self) -> str:
        return _(
            "Rank changes: %(up)s up, %(down)s down. "
            "Waiting sessions with a new position: %(moved)s of %(waiting)s."
        ) % {
            "up": f"{self.up_count:,}",
            "down": f"{self.down_count:,}",
            "moved": f"{self.waiting_moved:,}",
            "waiting": f"{self.waiting:,}",
        }


def preview_fair_share(
    pool: Pool,
    *,
    now: datetime,
    policy: Policy | None = None,
    weights: Weights | None = None,
    stored: TreeRules | None = None,
) -> FairSharePreview:
    """Calculate with the stored rules and with the change, and compare; nothing is written."""
    stored = stored or TreeRules(policy_of(pool), weights_of(pool))
    changed = TreeRules(policy or stored.policy, {**stored.weights, **(weights or {})})
    trees = trees_of(pool, stored, changed, now=now)
    all_before, all_after = (
        {key_of(result.path): result for result in tree.results(rules.policy)}
        for tree, rules in zip(trees, (stored, changed), strict=True)
    )
    before, after = _people(all_before), _people(all_after)
    steps = {key: after[key].rank - before[key].rank for key in after}
    up = sorted((key for key, step in steps.items() if step < 0), key=lambda key: steps[key])
    down = sorted((key for key, step in steps.items() if step > 0), key=lambda key: -steps[key])
    waiting_moved, waiting = _waiting(pool, (before, stored.policy), (after, changed.policy))
    names = names_of([*up[:SHOWN], *down[:SHOWN]])
    return FairSharePreview(
        _moves(up[:SHOWN], names, before, after),
        _moves(down[:SHOWN], names, before, after),
        len(up),
        len(down),
        len(after) - len(up) - len(down),
        waiting_moved,
        waiting,
        all_before,
        all_after,
    )


People = dict[SubjectKey, FairShareResult]


def _people(results: People) -> People:
    return {key: result for key, result in results.items() if len(result.path) == DEPTH}


def _moves(
    keys: Sequence[SubjectKey], names: Mapping[SubjectKey, SubjectName], before: People, after: People
) -> list[RankChange]:
    return [
        RankChange(
            names[key].name,
            names[key].parent_name,
            before[key].rank,
            after[key].rank,
            before[key].factor,
            after[key].factor,
        )
        for key in keys
    ]


def _waiting(pool: Pool, old: tuple[People, Policy], new: tuple[People, Policy]) -> tuple[int, int]:
    """Return how many waiting sessions would move in the queue, and how many are waiting."""
    rows = list(
        LabletSession.objects.filter(pool=pool.name, status=SessionStatus.PENDING)
        .order_by("-priority", "created_at", "pk")
        .values_list("pk", "owner_id", "project_id", "priority")[:WAITING]
    )
    first, second = (_queue(rows, *rules) for rules in (old, new))
    return sum(a != b for a, b in zip(first, second, strict=True)), len(rows)


def _queue(rows: Sequence[tuple[UUID, UUID, UUID, int]], people: People, policy: Policy) -> list[UUID]:
    def sort_key(row: tuple[UUID, UUID, UUID, int]) -> tuple[float, ...]:
        result = people.get(SubjectKey("user", row[1], row[2]))
        factors = compared_factors(result, policy) if result else (1.0, 1.0, 1.0)
        return (-row[3], *(-value for value in factors))

    return [row[0] for row in sorted(rows, key=sort_key)]
