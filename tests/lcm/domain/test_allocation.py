"""Division of an amount in proportion to weights, by table and by properties."""

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.domain.allocation import QUANTUM, split_proportionally

totals = st.decimals(0, 999_999, places=2)
weights = st.lists(st.decimals(0, 1_000_000, places=3), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("total", "shares", "parts"),
    [
        ("4.00", [2, 1, 1], ["2.00", "1.00", "1.00"]),
        ("1.00", [1, 1, 1], ["0.34", "0.33", "0.33"]),
        ("2.00", [1, 1, 1], ["0.67", "0.67", "0.66"]),
        ("0.01", [1, 2, 1], ["0.00", "0.01", "0.00"]),
        ("5.00", [0, 0], ["2.50", "2.50"]),
        ("5.00", [0, 3], ["0.00", "5.00"]),
        ("0.00", [1, 2], ["0.00", "0.00"]),
        ("7.13", [9], ["7.13"]),
    ],
)
def test_parts_are_in_proportion(total, shares, parts):
    assert split_proportionally(Decimal(total), [Decimal(share) for share in shares]) == [
        Decimal(part) for part in parts
    ]


def test_no_weights_give_no_parts():
    assert split_proportionally(Decimal(4), []) == []


def test_a_negative_weight_is_rejected():
    with pytest.raises(ValueError, match="negative"):
        split_proportionally(Decimal(4), [Decimal(1), Decimal(-1)])


@given(totals, weights)
def test_parts_sum_exactly(total, shares):
    assert sum(split_proportionally(total, shares)) == total


@given(totals, weights)
def test_parts_are_non_negative_multiples_of_the_quantum(total, shares):
    assert all(part >= 0 and part == part.quantize(QUANTUM) for part in split_proportionally(total, shares))


@given(totals, weights)
def test_each_part_is_within_a_quantum_of_its_exact_share(total, shares):
    weight_sum = sum(shares)
    exact = [total * share / weight_sum if weight_sum else total / len(shares) for share in shares]
    parts = split_proportionally(total, shares)
    assert all(abs(part - expected) < QUANTUM for part, expected in zip(parts, exact, strict=True))


@given(totals, weights)
def test_a_larger_weight_never_gets_less_by_more_than_a_quantum(total, shares):
    parts = [part for _, part in sorted(zip(shares, split_proportionally(total, shares), strict=True))]
    assert all(small - large <= QUANTUM for small, large in pairwise(parts))


@given(totals, st.integers(1, 60))
def test_zero_weights_give_equal_parts(total, count):
    parts = split_proportionally(total, [Decimal(0)] * count)
    assert max(parts) - min(parts) <= QUANTUM


@given(totals, st.lists(st.just(Decimal(0)), max_size=5))
def test_a_zero_weight_beside_others_gets_nothing(total, zeros):
    assert split_proportionally(total, [*zeros, Decimal(1)]) == [*zeros, total]
