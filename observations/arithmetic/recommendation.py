"""Recommended requirements from the usage of sessions, with the steps of the calculation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lcm.domain.messages import Message, gettext
from lcm.domain.resources import RESOURCE
from observations.arithmetic.measures import (
    RULES,
    SOURCE_NAMES,
    USED,
    round_up,
    text,
    with_headroom,
    with_unit,
)
from observations.arithmetic.statistics import Summary

UNDER, OVER = "under", "over"
UNDER_PERCENT, OVER_PERCENT = 10, 20
UNDER_LEAST, OVER_LEAST = 5, 10
BASES = ("max", "p95", "avg", "latest", "recommended")
STATISTIC_NAMES = {
    "max": gettext("max"),
    "p95": gettext("p95"),
    "avg": gettext("average"),
    "latest": gettext("latest"),
    "decayed_p95": gettext("decayed p95"),
}


class Provisioning(StrEnum):
    """Class of a definition according to its sessions."""

    UNDER_PROVISIONED = "under_provisioned"
    OVER_PROVISIONED = "over_provisioned"
    RIGHT_SIZED = "right_sized"
    NOT_ENOUGH_DATA = "not_enough_data"


@dataclass(frozen=True)
class Proposal:
    """A proposed value for one resource, with the steps of its calculation."""

    resource: str
    basis: str
    value: int
    derivation: Message


def propose(resource: str, basis: str, summary: Summary, source: str) -> Proposal:
    """Return the value of a basis: the statistic, plus headroom if recommended, rounded up."""
    if basis == "recommended":
        return _recommended(resource, summary, source)
    raw = int(getattr(summary, basis))
    value = _rounded_requirement(resource, raw)
    values = {"statistic": STATISTIC_NAMES[basis], "amount": text(raw), "source": SOURCE_NAMES[source]}
    if value == raw:
        derivation = gettext("%(statistic)s %(amount)s %(source)s", **values)
    else:
        derivation = gettext(
            "%(statistic)s %(amount)s %(source)s, rounded up to %(value)s",
            **values,
            value=with_unit(resource, value),
        )
    return Proposal(resource, basis, value, derivation)


def _recommended(resource: str, summary: Summary, source: str) -> Proposal:
    rule = RULES[resource]
    raw, headroom = int(getattr(summary, rule.statistic)), rule.headroom[source]
    target = with_headroom(raw, headroom)
    value = _rounded_requirement(resource, target)
    values = {
        "statistic": STATISTIC_NAMES[rule.statistic],
        "amount": text(raw),
        "source": SOURCE_NAMES[source],
        "headroom": f"{headroom / 100:.2f}",
        "result": text(target),
    }
    if value == target:
        derivation = gettext("%(statistic)s %(amount)s %(source)s × %(headroom)s = %(result)s", **values)
    else:
        derivation = gettext(
            "%(statistic)s %(amount)s %(source)s × %(headroom)s = %(result)s, rounded up to %(value)s",
            **values,
            value=with_unit(resource, value),
        )
    return Proposal(resource, "recommended", value, derivation)


def _rounded_requirement(resource: str, raw: int) -> int:
    """Return an amount in whole steps, at least one: a lab needs some of every resource."""
    step = RULES[resource].step
    return max(round_up(raw, step), step)


@dataclass(frozen=True)
class Flag:
    """A requirement that is significantly wrong, with the reason; `direction` is empty if it is right."""

    resource: str
    direction: str = ""
    reason: str = ""


def flag_of(
    resource: str,
    *,
    summary: Summary,
    source: str,
    required: int,
    before: str = "",
    exceeds: int = 0,
    most: int = 0,
) -> Flag:
    """Flag a resource with a wrong requirement; a flag is kept until the gap has halved.

    `exceeds` is the number of sessions above the requirement, `most` the largest of their values. With
    allocated figures, headroom alone raises no flag: an allocation is a limit, not a measurement.
    """
    rule = RULES[resource]
    proposal = propose(resource, "recommended", summary, source)
    # Compare before rounding: a step is as large as the floor, so a rounded gap would always reach it.
    need = int(getattr(summary, rule.statistic))
    if source == USED:
        need = with_headroom(need, rule.headroom[source])
    gap, half = need - required, 2 if before == UNDER else 1
    enough = summary.n >= UNDER_LEAST or before == UNDER
    if enough and gap * half >= rule.floor and gap * half * 100 >= UNDER_PERCENT * required:
        return Flag(resource, UNDER, _gap_text(resource, required, proposal.value, UNDER))
    if rule.stops and exceeds:
        return Flag(resource, UNDER, _exceeded_text(resource, exceeds, required, max(summary.max, most)))
    gap, half = required - proposal.value, 2 if before == OVER else 1
    enough = summary.n >= OVER_LEAST
    if enough and gap * half >= rule.floor and gap * half * 100 >= OVER_PERCENT * required:
        return Flag(resource, OVER, _gap_text(resource, required, proposal.value, OVER))
    return Flag(resource)


def _exceeded_text(resource: str, count: int, required: int, largest: int) -> str:
    label, limit = RESOURCE[resource].label, with_unit(resource, required)
    if count == 1:
        return f"{label}: 1 session exceeded {limit}, up to {text(largest)}."
    return f"{label}: {count} sessions exceeded {limit}, up to {text(largest)}."


def _gap_text(resource: str, required: int, target: int, direction: str) -> str:
    label, now, better = RESOURCE[resource].label, with_unit(resource, required), with_unit(resource, target)
    return f"{label}: {now} is too {'little' if direction == UNDER else 'much'}, {better} recommended."


def would_be_over(resource: str, *, summary: Summary, source: str, required: int) -> bool:
    """Return whether the resource would be flagged as over-provisioned with enough sessions."""
    rule = RULES[resource]
    gap = required - propose(resource, "recommended", summary, source).value
    return gap >= rule.floor and gap * 100 >= OVER_PERCENT * required


def provisioning_of(n: int, flags: Iterable[Flag], *, undecided: bool) -> Provisioning:
    """Return the class of a definition; one under-provisioned resource outweighs over-provisioned ones.

    `n` is the session count of the resource with the fewest sessions.
    """
    directions = {flag.direction for flag in flags}
    if UNDER in directions:
        return Provisioning.UNDER_PROVISIONED
    if OVER in directions:
        return Provisioning.OVER_PROVISIONED
    if n < UNDER_LEAST:
        return Provisioning.NOT_ENOUGH_DATA
    return Provisioning.NOT_ENOUGH_DATA if undecided and n < OVER_LEAST else Provisioning.RIGHT_SIZED


def has_changed(before: int, after: int) -> bool:
    """Return whether a dismissed recommendation has changed by 10 % or more."""
    return abs(after - before) * 10 >= before if before else after != before
