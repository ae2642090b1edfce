"""Fair share of a tree in a JSON document, for `manage.py fairshare_simulate`. Plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from fairshare.arithmetic.policy import Policy, policy_problems, read_weight, share_problem
from fairshare.arithmetic.tree import DEPTH, FairShareResult, Subject, calculate
from lcm.domain.resources import RESOURCE_NAMES

_KEYS = {"policy", "capacity", "unattributed", "tree"}
_NODE_KEYS = {"name", "weight", "usage", "children"}


class InvalidDocument(ValueError):
    """A document that cannot be simulated; the message states where and why."""


def simulate(document: Any) -> list[dict[str, Any]]:
    """Return norm share, effective usage, factor and rank of every node, in document order."""
    _expect(isinstance(document, Mapping), "The document must be a JSON object.")
    _reject_unknown(document, _KEYS, "the document")
    policy = _policy(document.get("policy", {}))
    capacity = _amounts(document.get("capacity", {}), "capacity")
    unattributed = _amount(document.get("unattributed", 0), "unattributed")
    tree = document.get("tree")
    _expect(isinstance(tree, list) and bool(tree), "“tree” must be a list of nodes.")
    subjects = list(_subjects(tree, ()))
    paths = [subject.path for subject in subjects]
    _expect(len(set(paths)) == len(paths), "A name occurs twice under the same parent.")
    if policy.normalisation == "capacity" and not any(capacity):
        raise InvalidDocument("Normalising by capacity needs “capacity”, in hours by resource.")
    try:
        results = calculate(subjects, policy, capacity=capacity, unattributed=unattributed)
    except ValueError as error:
        raise InvalidDocument(str(error)) from error
    by_path = {result.path: result for result in results}
    return [_shown(by_path[subject.path]) for subject in subjects]


def _subjects(nodes: Any, above: tuple[str, ...]) -> Iterator[Subject]:
    where = " / ".join(above) or "the top"
    _expect(isinstance(nodes, list), f"The children of {where} must be a list.")
    for node in nodes:
        _expect(isinstance(node, Mapping) and bool(node.get("name")), f"A node under {where} has no name.")
        path = (*above, str(node["name"]))
        named = " / ".join(path)
        _reject_unknown(node, _NODE_KEYS, named)
        _expect(len(path) <= DEPTH, f"{named}: a tree has only three levels: domains, projects and people.")
        weight = node.get("weight")
        problem = None if weight is None else share_problem(weight)
        _expect(not problem, f"The weight of {named}: {problem}")
        yield Subject(path, read_weight(weight), _amounts(node.get("usage", 0), named))
        yield from _subjects(node.get("children", []), path)


def _policy(values: Any) -> Policy:
    _expect(isinstance(values, Mapping), "“policy” must be an object.")
    _reject_unknown(values, set(Policy.__dataclass_fields__), "the policy")
    for name, problem in policy_problems(values).items():
        raise InvalidDocument(f"policy.{name}: {problem}")
    return Policy(**values)


def _amounts(value: object, where: str) -> list[float]:
    """Return hours by resource; a bare number means core-hours."""
    if not isinstance(value, Mapping):
        return [_amount(value, where), *([0.0] * (len(RESOURCE_NAMES) - 1))]
    _reject_unknown(value, set(RESOURCE_NAMES), where)
    return [_amount(value.get(name, 0), where) for name in RESOURCE_NAMES]


def _amount(value: Any, where: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    _expect(is_number and value >= 0, f"{where}: “{value}” is not an amount of hours.")
    return float(value)


def _shown(result: FairShareResult) -> dict[str, Any]:
    lfs = result.level_fair_share
    return {
        "path": list(result.path),
        "weight": result.weight,
        "inherited": result.inherited,
        "level_share": result.share,
        "norm_share": result.norm_share,
        "usage": result.weighted_usage,
        "norm_usage": result.actual,
        "effective_usage": result.effective,
        "factor": result.factor,
        "level_fair_share": lfs if math.isfinite(lfs) else None,
        "rank": result.rank,
    }


def _reject_unknown(values: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(values) - known)
    _expect(
        not unknown, f"{where} has “{', '.join(map(str, unknown))}”; known are {', '.join(sorted(known))}."
    )


def _expect(holds: object, message: str) -> None:
    if not holds:
        raise InvalidDocument(message)
