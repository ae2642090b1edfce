"""Division of a session's requirements among its kernels. Plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from lcm.domain.resources import RESOURCE

QUANTUM = Decimal("0.01")


def split_proportionally(total: Decimal, weights: Sequence[Decimal]) -> list[Decimal]:
    """Return parts proportional to the weights that sum to the total exactly.

    The rounding difference goes to the largest remainders. If all weights are 0, the parts are equal.
    """
    if not weights:
        return []
    if any(weight < 0 for weight in weights):
        raise ValueError("a weight must not be negative")
    if not any(weights):
        weights = [Decimal(1)] * len(weights)
    weight_sum = sum(weights)
    exact = [total * weight / weight_sum for weight in weights]
    parts = [value.quantize(QUANTUM, rounding=ROUND_FLOOR) for value in exact]
    missing_quanta = int((total - sum(parts)) / QUANTUM)
    by_remainder = sorted(range(len(parts)), key=lambda i: (parts[i] - exact[i], i))
    for index in by_remainder[:missing_quanta]:
        parts[index] += QUANTUM
    return parts


def allocate_to_nodes(
    nodes: Sequence[Mapping[str, Any]], requirements: Mapping[str, Decimal]
) -> list[dict[str, Decimal]]:
    """Return the resources of each node; they sum to the session's requirements exactly."""
    parts = {
        name: split_proportionally(total, [Decimal(str(node[RESOURCE[name].node_field])) for node in nodes])
        for name, total in requirements.items()
    }
    return [{name: parts[name][index] for name in parts} for index in range(len(nodes))]
