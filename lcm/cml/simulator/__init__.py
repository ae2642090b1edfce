"""A CML simulator for the demo and for tests: real API semantics, no hypervisor.

`SimulatorAdmin` adds controllers to a running simulator. `SimulatorApp` is the ASGI application. It needs
PyYAML to read topologies and gunicorn to serve.
"""

from lcm.cml.simulator.admin_client import SimulatorAdmin
from lcm.cml.simulator.app import SimulatorApp
from lcm.cml.simulator.controller import SimulatedController
from lcm.cml.simulator.options import ControllerOptions, OptionError

__all__ = [
    "ControllerOptions",
    "OptionError",
    "SimulatedController",
    "SimulatorAdmin",
    "SimulatorApp",
]
