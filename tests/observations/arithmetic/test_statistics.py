"""Percentiles, decay, outliers, steps and confidence: tables calculated by hand, and properties."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observations.arithmetic.histogram import DAY_ZERO, Digest, Histogram, decay_weight, merge_digests
from observations.arithmetic.measures import CPU, MEMORY, amount, gigabytes, hundredths, round_up, text
from observations.arithmetic.statistics import (
    choose_source,
    confidence_of,
    normal_range,
    percentile,
    step_change,
    summarize,
    weighted_percentile,
)

DAY = date(2026, 3, 1).toordinal()


def histogram(values, days=None):
    made = Histogram()
    for index, value in enumerate(values):
        made.add(value, decay_weight(days[index] if days else DAY))
    return made


# values in hundredths → p50, p90, p95, avg (rounded up). Nearest rank: the ⌈p·n⌉-th smallest.
TABLE = [
    ([300], 300, 300, 300, 300),
    ([100, 200], 100, 200, 200, 150),
    ([100, 200, 300, 400, 500], 300, 500, 500, 300),
    ([500, 100, 400, 200, 300], 300, 500, 500, 300),
    (list(range(1, 20)), 10, 18, 19, 10),  # n = 19: ranks 10, ⌈17.1⌉ = 18, ⌈18.05⌉ = 19
    (list(range(1, 21)), 10, 18, 19, 11),  # n = 20: ranks 10, 18, 19; average 10.5
    (list(range(1, 23)), 11, 20, 21, 12),  # n = 22: ranks 11, ⌈19.8⌉ = 20, ⌈20.9⌉ = 21; average 11.5
    ([400] * 7, 400, 400, 400, 400),  # ties
    ([100] * 19 + [900], 100, 100, 100, 140),  # one of twenty: p95 is the 19th
    ([100] * 18 + [900] * 2, 100, 100, 900, 180),  # two of twenty: p90 is the 18th
]


@pytest.mark.parametrize(("values", "p50", "p90", "p95", "avg"), TABLE)
def test_percentiles_are_those_of_the_table(values, p50, p90, p95, avg):
    summary = summarize(histogram(values), values[-1])
    assert (summary.p50, summary.p90, summary.p95, summary.avg) == (p50, p90, p95, avg)
    assert (summary.n, summary.min, summary.max) == (len(values), min(values), max(values))
    assert summary.latest == values[-1]


def test_an_empty_histogram_has_no_summary():
    assert summarize(Histogram(), None) is None


@pytest.mark.parametrize(
    ("values", "spread"),
    [([100] * 5, 0.0), ([100, 200, 300, 400, 500], 0.6667), ([0, 0, 0], 0.0), ([200, 300], 0.5)],
)
def test_spread_is_the_distance_of_p95_above_the_median(values, spread):
    assert summarize(histogram(values), None).spread == spread


def test_a_sample_has_half_the_weight_of_one_taken_fourteen_days_later():
    for day in (DAY, DAY_ZERO, DAY_ZERO - 100):
        assert decay_weight(day + 14) == pytest.approx(2 * decay_weight(day), rel=1e-4)
    assert decay_weight(DAY) == decay_weight(DAY + 14) / 2


@pytest.mark.parametrize(
    ("values", "ages", "decayed"),
    [
        # one old peak among new ones: weight 2^-4 = 0.0625 of 3.0625; 95 % = 2.909 is reached at 200
        ([900, 200, 200, 200], [56, 0, 0, 0], 200),
        # the same peak today: weight 1 of 4; 95 % = 3.8 is reached only at 900
        ([900, 200, 200, 200], [0, 0, 0, 0], 900),
        # 28 days: 0.25 of 3.25; 95 % = 3.0875 > 3, so the peak counts
        ([900, 200, 200, 200], [28, 0, 0, 0], 900),
        # 70 days: 2^-5 = 0.03125 of 3.03125; 95 % = 2.88 < 3
        ([900, 200, 200, 200], [70, 0, 0, 0], 200),
        # newer values are higher: old weights hardly matter
        ([100] * 10 + [300, 300], [140] * 10 + [0, 0], 300),
        ([900], [56], 900),  # n = 1: independent of weight
        ([900, 100], [56, 0], 900),  # n = 2: 95 % of 1.0625 is 1.009, more than the new one weighs
        ([900, 100], [70, 0], 100),  # 95 % of 1.03125 is 0.98
        ([900] + [100] * 4, [14] + [0] * 4, 900),  # n = 5: 95 % of 4.5 is 4.275, more than 4
        ([900] + [100] * 18, [14] + [0] * 18, 100),  # n = 19: 95 % of 18.5 is 17.575, of 18
        ([900] + [100] * 18, [0] * 19, 900),  # n = 19: 95 % of 19 is 18.05
        ([900] * 2 + [100] * 18, [14] * 2 + [0] * 18, 900),  # n = 20: 95 % of 19 is 18.05
        ([900] * 2 + [100] * 18, [28] * 2 + [0] * 18, 100),  # n = 20: 95 % of 18.5 is 17.575
        ([900] * 2 + [100] * 20, [0] * 2 + [14] * 20, 900),  # n = 22: 95 % of 12 is 11.4, of 10
        ([900] * 2 + [100] * 20, [14] * 2 + [0] * 20, 100),  # n = 22: 95 % of 21 is 19.95, of 20
    ],
)
def test_old_peaks_fade(values, ages, decayed):
    rows = histogram(values, [DAY - age for age in ages]).sorted_rows()
    assert weighted_percentile(rows, 95) == decayed


def test_without_age_the_decayed_percentile_is_the_plain_one():
    for values, *_ in TABLE:
        rows = histogram(values).sorted_rows()
        assert weighted_percentile(rows, 95) == percentile(rows, 95)


@pytest.mark.parametrize(
    ("used", "of", "before", "source"),
    [
        (4, 5, "", "used"),
        (8, 10, "", "used"),
        (79, 100, "", "allocated"),
        (0, 3, "", "allocated"),
        (1, 1, "", "used"),
        (0, 0, "", "allocated"),
        # Sessions without measured use change nothing; only measured sessions, or their exclusion, do.
        (4, 6, "used", "used"),
        (1, 100, "used", "used"),
        (0, 100, "used", "allocated"),
        (79, 100, "allocated", "allocated"),
        (80, 100, "allocated", "used"),
    ],
)
def test_the_source_depends_on_the_samples(used, of, before, source):
    digest = Digest()
    for index in range(of):
        known = {(CPU, "allocated"): 400} | ({(CPU, "used"): 200} if index < used else {})
        digest.add(known, DAY)
    assert choose_source(digest, CPU, before) == source


@pytest.mark.parametrize(
    ("values", "usual"),
    [
        # median 300, deviations 0 0 10 10 20: MAD 10; 3.5 · 10 / 0.6745 = 51.89
        ([280, 290, 300, 300, 310], (248.1, 351.9)),
        # more than half are equal: the mean deviation 80/5 = 16 · 1.253314 · 3.5 = 70.19
        ([300, 300, 300, 300, 380], (229.8, 370.2)),
        ([300] * 5, None),
        ([100, 200, 900, 100], None),
    ],
)
def test_the_normal_range_is_around_the_median(values, usual):
    found = normal_range(histogram(values))
    assert (found and tuple(round(each, 1) for each in found)) == usual


@pytest.mark.parametrize(
    ("newest_first", "step"),
    [
        ([500] * 5 + [300] * 5, "up"),
        ([300] * 5 + [500] * 15, "down"),
        ([500] * 4 + [300] * 6, ""),  # only four
        ([500] * 5 + [300] * 4, ""),  # too few before
        ([340] * 5 + [300] * 5, ""),  # less than the floor of half a core
        ([1100] * 5 + [1000] * 5, ""),  # a tenth
        ([500] * 5 + [300] * 9 + [500], ""),  # such a value occurred before
        ([1250] * 5 + [1000] * 10, "up"),
        ([500] * 5 + [300] * 15 + [900] * 10, "up"),  # only the fifteen earlier values count
    ],
)
def test_a_step_change_needs_the_newest_five_samples_beyond_all_earlier_ones(newest_first, step):
    assert step_change(CPU, newest_first) == step


@pytest.mark.parametrize(
    ("n", "level"),
    [
        (0, "not_enough_data"),
        (4, "not_enough_data"),
        (5, "low"),
        (9, "low"),
        (10, "medium"),
        (21, "medium"),
        (22, "high"),
    ],
)
def test_confidence_by_number_of_sessions(n, level):
    summary = summarize(histogram([300] * n), 300)
    assert confidence_of(summary, age_days=0, step="").level == level


@pytest.mark.parametrize(
    ("values", "age", "step", "level"),
    [
        ([300] * 22, 60, "", "high"),
        ([300] * 22, 61, "", "medium"),
        ([300] * 22, 0, "up", "medium"),
        ([300] * 22, 61, "up", "low"),
        ([300] * 20 + [460] * 2, 0, "", "medium"),  # p95 460 is 0.53 above the middle
        ([300] * 20 + [460] * 2, 90, "down", "low"),
        ([300] * 5, 90, "up", "low"),  # five sessions are not too few, only a poor guide
        ([300] * 4, 90, "up", "not_enough_data"),
    ],
)
def test_confidence_is_lowered_by_age_spread_and_step_changes(values, age, step, level):
    found = confidence_of(summarize(histogram(values), 300), age_days=age, step=step)
    assert found.level == level


@pytest.mark.parametrize(
    ("ages", "effective", "level"),
    [
        ([0] * 22, 22.0, "high"),
        ([100] * 26 + [0] * 4, 4.4, "low"),  # 26 old sessions have almost no weight compared with 4 of today
        ([100] * 26 + [0] * 6, 6.4, "medium"),
        ([100] * 30, 30.0, "high"),  # equally old: the age of the newest lowers it, not the weights
        ([100] * 2 + [0] * 2, 2.0, "not_enough_data"),
    ],
)
def test_sessions_without_weight_do_not_add_confidence(ages, effective, level):
    summary = summarize(histogram([300] * len(ages), [DAY - age for age in ages]), 300)
    found = confidence_of(summary, age_days=0, step="")
    assert (summary.effective_n, found.level) == (effective, level)
    is_named = f"weighted by age equal to {effective:g}" in map(str, found.reasons)
    assert is_named == (effective < 10 and len(ages) >= 10)


def test_confidence_has_reasons():
    reasons = confidence_of(summarize(histogram([300] * 22), 300), age_days=90, step="up").reasons
    assert tuple(map(str, reasons)) == (
        "22 sessions, 22 are enough",
        "spread 0.00 is small",
        "the newest observation is 90 days old",
        "the newest sessions stepped up",
    )


@pytest.mark.parametrize(
    ("megabytes", "units"),
    [(0, 0), (1, 1), (10, 1), (11, 2), (1024, 100), (1025, 101), (2048, 200), (3584, 350)],
)
def test_megabytes_become_hundredths_of_a_gigabyte_rounded_up(megabytes, units):
    assert gigabytes(megabytes) == units


@pytest.mark.parametrize(
    ("units", "shown"), [(430, "4.3"), (2400, "24"), (75, "0.75"), (0, "0"), (123400, "1,234")]
)
def test_amounts_are_formatted_without_trailing_zeros(units, shown):
    assert text(units) == shown


@pytest.mark.parametrize(
    ("units", "step", "up"), [(430, 50, 450), (450, 50, 450), (451, 50, 500), (5764, 100, 5800)]
)
def test_units_are_rounded_up_to_a_step(units, step, up):
    assert round_up(units, step) == up
    assert hundredths(amount(up)) == up


# --- properties ------------------------------------------------------------------------------------

samples = st.lists(st.tuples(st.integers(0, 10**6), st.integers(DAY - 400, DAY)), min_size=1, max_size=60)


def digest_of(rows):
    made = Digest()
    for value, day in rows:
        made.add({(MEMORY, "used"): value}, day)
    return made


@given(samples)
def test_percentiles_are_sample_values(rows):
    summary = summarize(digest_of(rows).of(MEMORY, "used"), rows[-1][0])
    values = {value for value, _ in rows}
    assert {summary.min, summary.p50, summary.p90, summary.p95, summary.decayed_p95, summary.max} <= values
    assert summary.min <= summary.p50 <= summary.p90 <= summary.p95 <= summary.max
    assert summary.min <= summary.avg <= summary.max


@given(samples, st.randoms())
def test_the_order_does_not_matter(rows, chance):
    shuffled = list(rows)
    chance.shuffle(shuffled)
    assert digest_of(rows).to_json() == digest_of(shuffled).to_json()


@given(samples, samples)
def test_removing_an_added_sample_restores_the_digest(rows, passing):
    digest = digest_of(rows + passing)
    for value, day in passing:
        digest.remove({(MEMORY, "used"): value}, day)
    assert digest.to_json() == digest_of(rows).to_json()


@given(samples, samples)
def test_merging_is_adding(some, others):
    assert merge_digests([digest_of(some), digest_of(others)]).to_json() == digest_of(some + others).to_json()


@given(samples)
def test_a_digest_survives_storage(rows):
    stored = digest_of(rows).to_json()
    assert Digest.from_json(stored).to_json() == stored


@given(samples, st.integers(0, 10**6))
def test_a_larger_sample_never_lowers_the_maximum(rows, value):
    before = summarize(digest_of(rows).of(MEMORY, "used"), None)
    after = summarize(digest_of([*rows, (max(before.max, value), DAY)]).of(MEMORY, "used"), None)
    assert after.max >= before.max
    assert after.p95 >= before.p50
