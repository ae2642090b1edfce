"""The CML simulator with what tests need: faults, counted calls and edits of labs on request."""

from tests.support.simulator.app import FaultyController, FaultySimulator
from tests.support.simulator.faults import Fault, FaultKind
from tests.support.simulator.process import FaultAdmin, SimulatorProcess

__all__ = ["Fault", "FaultAdmin", "FaultKind", "FaultyController", "FaultySimulator", "SimulatorProcess"]
