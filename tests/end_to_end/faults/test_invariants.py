"""Each invariant accepts valid facts and detects violations."""

from __future__ import annotations

import pytest

from tests.end_to_end.faults import invariants
from tests.end_to_end.faults.invariants import LabRecord, LeaseChange, Run, Step, Window
from tests.end_to_end.faults.ledger import Entry
from tests.end_to_end.faults.memory import Sample, at_minutes, growth_by_hour
from tests.end_to_end.faults.monitor import ports_in

RUNNING = [Step("PENDING", 0), Step("RUNNING", 10)]


def entry(**fields: object) -> Entry:
    return Entry(**{"session_id": "s", "acknowledged_at": 0.0, "ends_at": 100.0, **fields})  # type: ignore[arg-type]


def test_an_acknowledged_request_must_be_stored():
    assert invariants.lost_requests([entry()], {"s"}) == []
    assert len(invariants.lost_requests([entry()], {"other"})) == 1


EXTENDED = {"extensions": [(95.0, 150.0)]}


@pytest.mark.parametrize(
    ("fields", "to", "at", "violations"),
    [
        ({}, "COLLECTING", 100.0, 0),
        ({}, "COLLECTING", 97.0, 1),
        ({}, "STOPPING", 40.0, 1),
        ({}, "EXPIRED", 40.0, 1),
        (EXTENDED, "COLLECTING", 150.1, 0),
        # The extension was acknowledged, but the controller ended the lab at the old end.
        (EXTENDED, "COLLECTING", 101.0, 1),
        # An extension acknowledged after the controller had decided counts, too.
        ({"extensions": [(102.0, 150.0)]}, "COLLECTING", 103.0, 1),
        # A cancel may have been executed even if its response was lost.
        ({"cancel_sent": True}, "STOPPING", 40.0, 0),
    ],
)
def test_a_session_must_not_end_before_its_acknowledged_end(fields, to, at, violations):
    steps = {"s": [*RUNNING, Step(to, at)]}
    assert len(invariants.ended_early([entry(**fields)], steps)) == violations


@pytest.mark.parametrize(
    ("steps", "violations"),
    [
        ([*RUNNING, Step("STOPPING", 50)], 0),
        ([Step("PENDING", 0), Step("CANCELLED", 50)], 0),
        (RUNNING, 1),
        ([*RUNNING, Step("STOPPING", 90)], 1),
    ],
)
def test_an_acknowledged_cancel_must_end_the_session(steps, violations):
    cancelled = entry(cancel_sent=True, cancelled_at=50.2)
    assert len(invariants.ignored_cancels([cancelled], {"s": steps})) == violations
    assert invariants.ignored_cancels([entry()], {"s": RUNNING}) == []


def test_every_session_must_reach_a_final_status_without_failing():
    assert invariants.unfinished({"a": "TERMINATED", "b": "CANCELLED", "c": "EXPIRED", "d": "FAILED"}) == []
    assert len(invariants.unfinished({"a": "STOPPING", "b": "PENDING"})) == 2
    assert invariants.failed({"s": RUNNING}) == []
    assert len(invariants.failed({"s": [*RUNNING, Step("FAILED", 20, "could not be taken down")]})) == 1


def test_a_transition_must_not_be_dated_before_the_creation():
    assert invariants.steps_before_creation({"s": 0.0}, {"s": RUNNING}) == []
    assert len(invariants.steps_before_creation({"s": 0.067}, {"s": RUNNING})) == 1


@pytest.mark.parametrize(
    ("runs", "violations"),
    [
        ([Run("a", 0, 5), Run("a", 5, 6)], 0),
        ([Run("a", 0, 5), Run("b", 1, 6)], 0),
        ([Run("a", 0, 5), Run("a", 4, 6)], 1),
        # The long run overlaps both of the short ones.
        ([Run("a", 0, 60), Run("a", 20, 21), Run("a", 40, 41)], 2),
        # A frozen process found that its lease had expired and did nothing more.
        ([Run("a", 0, 60, "it lost its lease"), Run("a", 20, 21), Run("a", 40, 41)], 0),
    ],
)
def test_two_runs_of_one_handler_must_not_overlap(runs, violations):
    assert len(invariants.overlapping_runs(runs)) == violations


KILL = Window("kill worker-1", 100, 100, death=True)
LATER = Window("restart the database", 110, 130)
FROZEN = Window("freeze worker-2", 90, 130)
CLOCK = Window("wrong clock", 110, 130, control_plane=False)


@pytest.mark.parametrize(
    ("name", "starts", "faults", "violations"),
    [
        ("a", [95, 119], [KILL], 0),
        ("a", [95, 121], [KILL], 1),
        ("a", [95], [KILL], 1),
        ("tick", [95, 109], [KILL], 0),
        ("tick", [95, 111], [KILL], 1),
        # Broker and database have more time, and so does the tick.
        ("tick", [95, 149], [LATER], 0),
        # The database went down before the handler was due: the time counts from its return.
        ("a", [95, 149], [KILL, LATER], 0),
        ("a", [95, 151], [KILL, LATER], 2),
        # The other worker was already frozen.
        ("a", [95, 149], [FROZEN, KILL], 0),
        ("a", [95, 151], [FROZEN, KILL], 2),
        # A controller's clock is no excuse.
        ("a", [95, 149], [KILL, CLOCK], 1),
    ],
)
def test_a_handler_must_run_again_in_time_after_each_fault(name, starts, faults, violations):
    runs = [Run(name, start, start + 1) for start in starts]
    checks, late = invariants.late_runs(runs, faults, {name: 5.0}, observed_until=1000)
    assert (checks, len(late)) == (len(faults), violations)


def test_a_recovery_that_could_not_be_observed_to_its_limit_is_not_checked():
    assert invariants.late_runs([], [KILL], {"a": 5.0}, observed_until=110) == (0, [])


def test_the_longest_gap_of_each_name_is_reported():
    runs = [Run("a", 0, 1), Run("a", 5, 6), Run("a", 30, 31), Run("b", 0, 1)]
    assert invariants.longest_gaps(runs, observed_until=40) == {"a": 25, "b": 40}


@pytest.mark.parametrize(
    ("expires", "holder", "violations"), [(99, "new", 0), (101, "new", 1), (101, "old", 0)]
)
def test_a_lease_must_not_be_taken_before_its_end(expires, holder, violations):
    assert len(invariants.stolen_leases([LeaseChange("tick", 100, "old", holder, expires)])) == violations


def test_a_port_must_be_in_the_labs_of_one_session_on_a_worker():
    first, again = LabRecord("w1", "s1", (5000, 5001)), LabRecord("w1", "s1", (5000,))
    elsewhere, taken = LabRecord("w2", "s2", (5000,)), LabRecord("w1", "s2", (5001,))
    assert invariants.duplicate_ports([first, again, elsewhere]) == []
    assert len(invariants.duplicate_ports([first, taken])) == 1
    assert ports_in(["serial:5041", "pat:2022:22", "pat:udp:2023:53", "core"]) == [5041, 2022, 2023]


def test_a_running_session_must_have_a_lab():
    assert invariants.running_without_lab(["s1"], [LabRecord("w1", "s1", ())]) == []
    assert len(invariants.running_without_lab(["s1", "s2"], [LabRecord("w1", "s1", ())])) == 1


def test_a_slot_must_count_its_leases_correctly():
    assert invariants.wrong_lease_counts([("a", 2, 2)]) == []
    assert len(invariants.wrong_lease_counts([("a", 2, 1)])) == 1


def test_usage_must_be_equal_on_every_level():
    assert invariants.unequal_usage({"records": [1, 2], "user buckets": [1, 2]}) == []
    assert len(invariants.unequal_usage({"records": [1, 2], "user buckets": [1, 3]})) == 1


def test_errors_are_counted_by_kind():
    assert invariants.errors_by_kind(["a", "b", "a"]) == ["2 × a", "1 × b"]


@pytest.mark.parametrize(("last", "growth"), [(110.0, 20.0), (100.0, 0.0)])
def test_the_growth_of_memory_is_the_slope_after_the_start(last, growth):
    samples = [
        Sample(0, "web", 1, 0, 0, 1),
        Sample(1800, "web", 1, 0, 100, 1),
        Sample(3600, "web", 1, 0, last, 1),
    ]
    assert growth_by_hour(samples, after=1800) == pytest.approx(growth)


def test_the_table_of_memory_shows_when_a_process_did_not_run():
    samples = [Sample(600 + step, "web", 1, 0, 100 + step, 1) for step in (0, 30)]
    assert at_minutes(samples, (0, 10)) == [["web 1", "–", "100.0"]]
