"""How a session's requirements are divided among its kernels. Plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal

QUANTUM = Decimal("0.01")


def divide(total: Decimal, weights: Sequence[Decimal]) -> list[Decimal]:
    """Parts in proportion to the weights that sum to the total exactly.

    What rounding leaves over goes to the largest remainders. Without any weight the parts are equal.
    """
    if not weights:
        return []
    if any(weight < 0 for weight in weights):
        raise ValueError("a weight must not be negative")
    if not any(weights):
        weights = [Decimal(1)] * len(weights)
    whole = sum(weights)
    exact = [total * weight / whole for weight in weights]
    parts = [value.quantize(QUANTUM, rounding=ROUND_FLOOR) for value in exact]
    left_over = int((total - sum(parts)) / QUANTUM)
    by_remainder = sorted(range(len(parts)), key=lambda i: (parts[i] - exact[i], i))
    for index in by_remainder[:left_over]:
        parts[index] += QUANTUM
    return parts
