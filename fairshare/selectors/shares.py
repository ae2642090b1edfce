"""Rows of the tree for pages: expanded branches or search results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery

from fairshare.models import FairShare, FairShareCalculation
from fairshare.models.levels import Level
from fairshare.selectors.subject_names import SubjectName, names_of
from fairshare.selectors.trees import SubjectKey, with_policies
from lcm.models import Membership, Project, User
from scheduling.models import Pool

MAX_CHILDREN = 200
FEW = 50
MAX_SEARCH_ROWS = 100
MAX_MATCHES = 1000


@dataclass(frozen=True)
class TreeRow:
    """A row of the tree."""

    share: FairShare
    named: SubjectName
    depth: int
    is_open: bool
    bar: float
    mark: float

    @property
    def key(self) -> str:
        return f"{self.share.level}:{self.share.subject_id}:{self.share.parent_id}"

    @property
    def name(self) -> str:
        return self.named.name

    @property
    def times_share(self) -> float:
        """Return usage as a multiple of the share; infinite for usage without a share."""
        if not self.share.actual_usage:
            return 0.0
        return self.share.actual_usage / self.share.norm_share if self.share.norm_share else inf

    @property
    def tone(self) -> str:
        if self.times_share >= 1.25:
            return "text-bad"
        return "text-ok" if self.times_share <= 0.75 else ""


@dataclass(frozen=True)
class TreeRows:
    """Rows in tree order, the expanded branches, and the number of omitted rows."""

    rows: list[TreeRow]
    hidden: int = 0
    opened: tuple[UUID, ...] = ()


def shares() -> QuerySet[FairShare]:
    return FairShare.objects.select_related("pool")


def calculation_of(pool: Pool) -> FairShareCalculation | None:
    return FairShareCalculation.objects.filter(pool=pool).order_by("-at", "-pk").first()


def pools_to_share() -> QuerySet[Pool]:
    """Return pools with their policies and the time of their last calculation, `calculated_at`."""
    newest = FairShareCalculation.objects.filter(pool=OuterRef("pk")).order_by("-at").values("at")[:1]
    return with_policies(Pool.objects.order_by("name")).annotate(calculated_at=Subquery(newest))


def tree_rows(pool: Pool, opened: Sequence[UUID] | None = None) -> TreeRows:
    """Return all domains, the projects of expanded domains and the people of expanded projects.

    By default small trees are expanded to their projects.
    """
    rows = FairShare.objects.filter(pool=pool)
    domains = list(rows.filter(level=Level.DOMAIN).order_by("rank", "pk")[:MAX_CHILDREN])
    if opened is None:
        below: Sequence[FairShare] = _few_projects(rows)
        opened = tuple(dict.fromkeys(row.parent_id for row in below))
        hidden = 0
    else:
        below, hidden = _children(rows, opened)
    children: dict[UUID, list[FairShare]] = {}
    for row in below:
        children.setdefault(row.parent_id, []).append(row)
    lines: list[tuple[FairShare, int]] = []

    def add(row: FairShare, depth: int) -> None:
        lines.append((row, depth))
        if row.level != Level.USER:
            for child in children.get(row.subject_id, []):
                add(child, depth + 1)

    for domain in domains:
        add(domain, 1)
    return TreeRows(_rows(lines, set(opened)), hidden, tuple(opened))


def _few_projects(rows: QuerySet[FairShare]) -> list[FairShare]:
    """Return all projects, or none if there are many."""
    projects = list(rows.filter(level=Level.PROJECT).order_by("rank", "pk")[: FEW + 1])
    return projects if len(projects) <= FEW else []


def _children(rows: QuerySet[FairShare], parents: Collection[UUID]) -> tuple[Sequence[FairShare], int]:
    """Return the first projects and people below these parents, and the number of others, in one query."""
    children = rows.exclude(level=Level.DOMAIN).filter(parent_id__in=parents)
    totals = children.order_by().values("pool").annotate(count=Count("pk")).values("count")
    first = list(children.annotate(siblings=Subquery(totals)).order_by("rank", "pk")[:MAX_CHILDREN])
    return first, first[0].siblings - len(first) if first else 0


def search_tree(pool: Pool, text: str) -> TreeRows:
    """Return projects and people by name: the first matches, ordered by rank."""
    projects = Project.objects.filter(Q(name__icontains=text) | Q(domain__name__icontains=text))
    people = User.objects.filter(
        Exists(Membership.objects.filter(user=OuterRef("pk"))), username__icontains=text
    )
    matches = FairShare.objects.filter(
        Q(level=Level.PROJECT, subject_id__in=projects.order_by("name").values("pk")[:MAX_MATCHES])
        | Q(level=Level.USER, subject_id__in=people.order_by("username").values("pk")[:MAX_MATCHES]),
        pool=pool,
    )
    depth = {level: number for number, level in enumerate(Level.values, 1)}
    rows = list(matches.order_by("level", "rank", "pk")[: MAX_SEARCH_ROWS + 1])
    lines = [(row, depth[row.level]) for row in rows[:MAX_SEARCH_ROWS]]
    return TreeRows(_rows(lines, set()), hidden=len(rows) - len(lines))


def _rows(lines: Sequence[tuple[FairShare, int]], opened: set[UUID]) -> list[TreeRow]:
    keys = [SubjectKey(row.level, row.subject_id, row.parent_id) for row, _ in lines]
    names = names_of(keys)
    most = max([0.01, *(max(row.actual_usage, row.norm_share) for row, _ in lines)])
    return [
        TreeRow(
            row,
            names[key],
            depth,
            row.subject_id in opened and row.level != Level.USER,
            100 * row.actual_usage / most,
            min(100 * row.norm_share / most, 98),
        )
        for key, (row, depth) in zip(keys, lines, strict=True)
    ]
