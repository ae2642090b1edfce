"""Changes of a pool's policy and weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import UUIDField, Value
from django.utils import translation
from django.utils.translation import gettext as _

from fairshare.arithmetic.policy import Policy, Weight, policy_problems, read_weight, share_problem
from fairshare.models import FairShare, FairSharePolicy
from fairshare.models.levels import ROOT, Level
from fairshare.models.shares import POLICY_FIELDS
from fairshare.selectors.subject_names import names_of
from fairshare.selectors.trees import SubjectKey, policy_of
from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput
from lcm.models import Domain, Membership, Project
from lcm.services.changelog import build_entry, differences, log_change, log_changes
from lcm.services.validation import clean_model, refuse_unknown, require_reason
from scheduling.models import Pool
from scheduling.selectors import fair_share

MOST_AT_ONCE = 2_000


def changed_policy(present: Policy, changes: Mapping[str, Any]) -> Policy:
    """Return a policy with some values changed; raise an error if one is invalid."""
    refuse_unknown(changes, POLICY_FIELDS, _("Unknown setting of a fair-share policy."))
    if problems := policy_problems(changes):
        raise InvalidInput({name: problem.translated(translation) for name, problem in problems.items()})
    return Policy(**{name: changes.get(name, getattr(present, name)) for name in POLICY_FIELDS})


def save_policy(
    *, pool: Pool, actor: Actor, reason: str, **changes: Any
) -> tuple[FairSharePolicy, list[str]]:
    """Save the policy, which takes effect with the next calculation; return it with warnings."""
    new = changed_policy(policy_of(pool), changes)
    require_reason(reason)
    with transaction.atomic():
        # Without the default ordering, which would lock the pool as well.
        policies = FairSharePolicy.objects.select_for_update().filter(pool=pool).order_by("pk")
        row = policies.first() or FairSharePolicy(pool=pool)
        before = {name: getattr(row, name) for name in POLICY_FIELDS}
        for name in POLICY_FIELDS:
            setattr(row, name, getattr(new, name))
        clean_model(row)
        row.save()
        old, changed = differences(before, {name: getattr(row, name) for name in POLICY_FIELDS})
        names = ", ".join(name.replace("_", " ") for name in changed) or "nothing"
        log_change(
            row,
            actor=actor,
            event="fair_share.policy_changed",
            message=f"fair-share policy of {pool} saved: {names} changed",
            reason=reason,
            before=old,
            after=changed,
        )
    return row, warnings_for(pool)


def warnings_for(pool: Pool) -> list[str]:
    """Return why a policy would have no effect."""
    if fair_share.is_ordered_by_fair_share(pool):
        return []
    text = _("The scheduler of %(pool)s does not use the plugin “fairshare”, so the policy has no effect.")
    return [text % {"pool": pool}]


def set_weights(*, pool: Pool, weights: Mapping[SubjectKey, Any], actor: Actor, reason: str = "") -> int:
    """Set weights to a number, “parent” or None (the default), all or none; return how many changed."""
    checked = checked_weights(weights)
    with transaction.atomic():
        rows = _rows_for(pool, checked)
        changed = [(row, row.own_weight) for key, row in rows.items() if row.own_weight != checked[key]]
        for key, row in rows.items():
            row.own_weight = checked[key]
        FairShare.objects.bulk_update([row for row, _ in changed], ["weight", "uses_parent"], batch_size=500)
        names = names_of(rows)
        by_row = {row.pk: names[key] for key, row in rows.items()}
        log_changes(
            build_entry(
                row,
                actor=actor,
                event="fair_share.weight_changed",
                message=f"weight of {by_row[row.pk]} in {pool}: "
                f"{_weight_text(old)} → {_weight_text(row.own_weight)}",
                reason=reason,
                before={"weight": old},
                after={"weight": row.own_weight},
            )
            for row, old in changed
        )
    return len(changed)


def checked_weights(weights: Mapping[SubjectKey, Any]) -> dict[SubjectKey, Weight]:
    """Return numbers, “parent” or None; raise an error that names subjects with an invalid weight."""
    if len(weights) > MOST_AT_ONCE:
        text = _("At most %(count)s weights can be changed at once.") % {"count": f"{MOST_AT_ONCE:,}"}
        raise InvalidInput({"weights": text})
    problems = {
        key: problem
        for key, value in weights.items()
        if value is not None and (problem := share_problem(value))
    }
    if problems:
        names = names_of(problems)
        text = _("%(name)s: %(problem)s")
        raise InvalidInput(
            {
                "weights": [
                    text % {"name": names[key].name, "problem": problem.translated(translation)}
                    for key, problem in problems.items()
                ]
            }
        )
    _reject_unknown_subjects(weights)
    return {key: read_weight(value) for key, value in weights.items()}


def _reject_unknown_subjects(weights: Mapping[SubjectKey, Any]) -> None:
    """Raise an error for subjects that are not in the tree."""
    if unknown := set(weights) - _in_tree(weights):
        names = names_of(unknown)
        text = _("%(name)s is not in the tree.")
        raise InvalidInput({"weights": [text % {"name": names[key]} for key in sorted(unknown)]})


def _in_tree(keys: Iterable[SubjectKey]) -> set[SubjectKey]:
    """Return the keys of existing domains, projects in their domains, and members of projects."""
    by_level: dict[str, list[SubjectKey]] = {level: [] for level in Level.values}
    for key in keys:
        by_level[key.level].append(key)
    domains, projects, people = ([key.subject for key in by_level[level]] for level in Level.values)
    members = Membership.objects.filter(
        user__in=people, project__in=[key.parent for key in by_level[Level.USER]]
    )
    rows = (
        members.order_by()
        .values_list(Value(Level.USER.value), "user_id", "project_id")
        .union(
            Project.objects.filter(pk__in=projects)
            .order_by()
            .values_list(Value(Level.PROJECT.value), "pk", "domain_id"),
            Domain.objects.filter(pk__in=domains)
            .order_by()
            .values_list(Value(Level.DOMAIN.value), "pk", Value(ROOT, output_field=UUIDField())),
            all=True,
        )
    )
    return {SubjectKey(*row) for row in rows}


def _rows_for(pool: Pool, weights: Mapping[SubjectKey, Weight]) -> dict[SubjectKey, FairShare]:
    """Return the locked rows of these subjects, created if there was no calculation yet."""
    FairShare.objects.bulk_create(
        [
            FairShare(pool=pool, level=level, subject_id=subject, parent_id=parent)
            for level, subject, parent in weights
        ],
        ignore_conflicts=True,
        batch_size=500,
    )
    locked = FairShare.objects.select_for_update().filter(
        pool=pool, subject_id__in={key.subject for key in weights}
    )
    rows = {SubjectKey(row.level, row.subject_id, row.parent_id): row for row in locked.order_by("pk")}
    return {key: rows[key] for key in weights}


def _weight_text(weight: Weight) -> str:
    if weight is None:
        return "the default"
    return weight if isinstance(weight, str) else f"{weight:g}"
