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
    "right": lambda lcm_time: lcm_time,
    "10 min ahead": lambda lcm_time: lcm_time + 600,
    "10 min behind": lambda lcm_time: lcm_time - 600,
    "jumping": lambda lcm_time: lcm_time + (next(JUMPS) % 3 - 1) * 3600,
}


class Machine:
    """The clocks of a controller's machine, which advance only when a test says so."""

    def __init__(self, wall=CLOCKS["right"]):
        self.elapsed = 0.0
        self.clock = LcmClock(lambda: 5000 + self.elapsed, lambda: wall(self.lcm_time()))

    def lcm_time(self):
        return START + self.elapsed

    def lcm_now(self):
        return datetime.fromtimestamp(self.lcm_time(), UTC)

    def receive(self, *, request_seconds=0.0, response_seconds=0.0, clock_offset=0.0):
        """Receive a response after both delays, from an LCM whose clock is `clock_offset` seconds ahead."""
        sent = self.clock.monotonic()
        self.elapsed += request_seconds
        written = datetime.fromtimestamp(self.lcm_time() + clock_offset, UTC).isoformat()
        self.elapsed += response_seconds
        self.clock.sample(written, sent=sent, received=self.clock.monotonic())

    def error(self):
        return self.clock.now().timestamp() - self.lcm_time()


def test_before_the_first_response_lcm_s_time_is_unknown():
    machine = Machine(CLOCKS["10 min ahead"])
    for text in (None, "", "half past ten"):
        machine.clock.sample(text, sent=1, received=2)
    assert (machine.clock.is_steady, machine.clock.skew()) == (False, None)
    assert "unknown" in machine.clock.problem()


@pytest.mark.parametrize("wall", CLOCKS)
def test_lcm_s_time_is_known_whatever_the_local_clock_shows(wall):
    machine = Machine(CLOCKS[wall])
    machine.receive(request_seconds=0.1, response_seconds=0.005)
    for _ in range(20):
        machine.elapsed += 1
        assert machine.error() == pytest.approx(0, abs=0.01)
    assert machine.clock.is_steady


@pytest.mark.parametrize(
    ("wall", "skew", "text"),
    [
        ("right", 0, ""),
        ("10 min ahead", 600, "600 s ahead of LCM's"),
        ("10 min behind", -600, "600 s behind LCM's"),
    ],
)
def test_the_skew_is_measured_and_described(wall, skew, text):
    machine = Machine(CLOCKS[wall])
    machine.receive()
    assert machine.clock.skew() == pytest.approx(skew, abs=0.01)
    assert machine.clock.problem().endswith(text)
    assert bool(machine.clock.problem()) == bool(text)


@pytest.mark.parametrize(("request_seconds", "response_seconds"), [(10, 0.01), (0.01, 10), (10, 10)])
def test_the_estimate_is_never_ahead_of_lcm_s_time_however_slow_lcm_is(request_seconds, response_seconds):
    machine = Machine()
    machine.receive(request_seconds=request_seconds, response_seconds=response_seconds)
    assert machine.error() == pytest.approx(-response_seconds, abs=0.001)


def test_the_fastest_response_determines_the_estimate():
    machine = Machine()
    machine.receive(request_seconds=0.01, response_seconds=0.01)
    machine.receive(request_seconds=25, response_seconds=0.01)
    machine.receive(request_seconds=0.01, response_seconds=8)
    assert machine.clock.is_steady
    assert machine.error() == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize(("clock_offset", "is_steady"), [(1.5, True), (3, False), (-3, False), (600, False)])
def test_disagreeing_responses_make_the_time_unsteady(clock_offset, is_steady):
    machine = Machine()
    machine.receive()
    machine.receive(clock_offset=clock_offset)
    assert machine.clock.is_steady == is_steady
    assert ("unsteady" in machine.clock.problem()) != is_steady
    for _ in range(16):
        machine.receive(clock_offset=clock_offset)
    assert machine.clock.is_steady, "LCM's clock was set, and its responses agree again"
    assert machine.error() == pytest.approx(clock_offset, abs=0.01)


def test_no_other_controller_module_reads_the_local_clock():
    modules = {path.name: ast.parse(path.read_text()) for path in (ROOT / "lcm" / "controller").glob("*.py")}
    clock_readers = [
        name
        for name, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("time.time", "datetime.now")
    ]
    assert clock_readers == ["clock.py"]
