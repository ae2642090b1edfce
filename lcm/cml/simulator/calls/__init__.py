"""Calls of the simulated API, by subject."""

from lcm.cml.simulator.calls import labs, nodes, system
from lcm.cml.simulator.calls.routing import respond

__all__ = ["labs", "nodes", "respond", "system"]
