"""The controller uses LCM's time, whatever the local clock shows."""

import ast
from datetime import UTC, datetime
from itertools import count

import pytest

from lcm.controller.clock import LcmClock
from tests.support.control_plane import ROOT

START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
JUMPS = count()
CLOCKS = {
    "right": lambda true: true,
    "10 min ahead": lambda true: true + 600,
    "10 min behind": lambda true: true - 600,
    "jumping": lambda true: true + (next(JUMPS) % 3 - 1) * 3600,
}


class Machine:
    """The clocks of a controller's machine, which advance only when a test says so."""

    def __init__(self, wall=CLOCKS["right"]):
        self.passed = 0.0
        self.clock = LcmClock(lambda: 5000 + self.passed, lambda: wall(self.lcm_time()))

    def lcm_time(self):
        return START + self.passed

    def lcm_now(self):
        return datetime.fromtimestamp(self.lcm_time(), UTC)

    def receive(self, *, there=0.0, back=0.0, off=0.0):
        """Respond after `there` and `back` seconds, from an LCM whose clock is `off` s ahead."""
        sent = self.clock.monotonic()
        self.passed += there
        written = datetime.fromtimestamp(self.lcm_time() + off, UTC).isoformat()
        self.passed += back
        self.clock.note(written, sent=sent, received=self.clock.monotonic())

    def error(self):
        return self.clock.now().timestamp() - self.lcm_time()


def test_before_the_first_response_lcm_s_time_is_unknown():
    machine = Machine(CLOCKS["10 min ahead"])
    for text in (None, "", "half past ten"):
        machine.clock.note(text, sent=1, received=2)
    assert (machine.clock.is_steady, machine.clock.skew()) == (False, None)
    assert "unknown" in machine.clock.problem()


@pytest.mark.parametrize("wall", CLOCKS)
def test_lcm_s_time_is_known_whatever_the_local_clock_shows(wall):
    machine = Machine(CLOCKS[wall])
    machine.receive(there=0.1, back=0.005)
    for _ in range(20):
        machine.passed += 1
        assert machine.error() == pytest.approx(0, abs=0.01)
    assert machine.clock.is_steady


@pytest.mark.parametrize(
    ("wall", "skew", "words"),
    [
        ("right", 0, ""),
        ("10 min ahead", 600, "600 s ahead of LCM's"),
        ("10 min behind", -600, "600 s behind LCM's"),
    ],
)
def test_the_skew_is_measured_and_described(wall, skew, words):
    machine = Machine(CLOCKS[wall])
    machine.receive()
    assert machine.clock.skew() == pytest.approx(skew, abs=0.01)
    assert machine.clock.problem().endswith(words)
    assert bool(machine.clock.problem()) == bool(words)


@pytest.mark.parametrize(("there", "back"), [(10, 0.01), (0.01, 10), (10, 10)])
def test_the_estimate_is_never_ahead_of_lcm_s_time_however_slow_lcm_is(there, back):
    machine = Machine()
    machine.receive(there=there, back=back)
    assert machine.error() == pytest.approx(-back, abs=0.001)


def test_the_fastest_response_determines_the_estimate():
    machine = Machine()
    machine.receive(there=0.01, back=0.01)
    machine.receive(there=25, back=0.01)
    machine.receive(there=0.01, back=8)
    assert machine.clock.is_steady
    assert machine.error() == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize(("off", "is_steady"), [(1.5, True), (3, False), (-3, False), (600, False)])
def test_disagreeing_responses_make_the_time_unsteady(off, is_steady):
    machine = Machine()
    machine.receive()
    machine.receive(off=off)
    assert machine.clock.is_steady == is_steady
    assert ("unsteady" in machine.clock.problem()) != is_steady
    for _ in range(16):
        machine.receive(off=off)
    assert machine.clock.is_steady, "LCM's clock was set, and its responses agree again"
    assert machine.error() == pytest.approx(off, abs=0.01)


def test_no_other_controller_module_reads_the_local_clock():
    trees = {path.name: ast.parse(path.read_text()) for path in (ROOT / "lcm" / "controller").glob("*.py")}
    readings = [
        name
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("time.time", "datetime.now")
    ]
    assert readings == ["clock.py"]
