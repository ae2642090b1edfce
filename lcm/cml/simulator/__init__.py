"""A CML simulator for the demo and for tests: real API semantics, no hypervisor.

`SimulatorProcess` runs it in a separate process, controlled by `SimulatorAdmin`. `SimulatorApp` is the ASGI
application for use in-process. It needs PyYAML to read topologies and gunicorn to serve.
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
