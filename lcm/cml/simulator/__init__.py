"""A CML look-alike for the demo and for tests: real semantics, no hypervisor.

In a process of its own `SimulatorProcess`, told what to do by `SimulatorAdmin`; in-process `SimulatorApp`, an
ASGI application. It needs PyYAML to read topologies and gunicorn to be served.
"""

from lcm.cml.simulator.admin_client import SimulatorAdmin
from lcm.cml.simulator.app import SimulatorApp
from lcm.cml.simulator.controller import SimulatedController
from lcm.cml.simulator.faults import Fault, FaultKind
from lcm.cml.simulator.options import ControllerOptions, OptionError
from lcm.cml.simulator.process import SimulatorProcess

__all__ = [
    "ControllerOptions",
    "Fault",
    "FaultKind",
    "OptionError",
    "SimulatedController",
    "SimulatorAdmin",
    "SimulatorApp",
    "SimulatorProcess",
]
