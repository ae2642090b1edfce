"""Options of controllers and faults, and their validation."""

import pytest

from lcm.cml.simulator import ControllerOptions, OptionError
from tests.support.simulator import Fault, FaultKind


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"version": "3.1"}, "version must be one of 2.9, 2.10"),
        ({"colour": "red"}, "Unknown option 'colour'"),
        ({"boot_seconds": -1}, "boot_seconds must be a number"),
        ({"cpus": "many"}, "cpus must be a number"),
        ({"users": {}}, "at least one name"),
        ({"users": {"a": 1}}, "to its password"),
        ({"users": ["a"]}, "users must be an object"),
        ({"seed": "x"}, "seed a whole number"),
        ([], "must be a JSON object"),
    ],
)
def test_invalid_options_are_rejected_by_name(values, reason):
    with pytest.raises(OptionError, match=reason):
        ControllerOptions.from_dict(values)


def test_options_are_shown_without_passwords():
    shown = ControllerOptions.from_dict({"users": {"admin": "secret"}, "cpus": 8}).to_dict()
    assert (shown["users"], shown["cpus"]) == (["admin"], 8)
    assert "secret" not in str(shown)


@pytest.mark.parametrize(
    "values", [{"kind": "flood"}, {}, {"kind": "status", "colour": 1}, {"kind": "drop", "path": "("}, 7]
)
def test_invalid_faults_are_rejected(values):
    with pytest.raises(OptionError, match="Invalid fault"):
        Fault.from_dict(values)


def test_a_fault_round_trips_as_json():
    fault = Fault(FaultKind.STATUS, path="/start$", times=2, status=502, fields=["a"])
    assert Fault.from_dict(fault.to_dict()) == fault
