"""`python -m tests.support.simulator`: the simulator with faults, for `SimulatorProcess`."""

import argparse

from lcm.cml.simulator.command_line import add_arguments, serve
from tests.support.simulator.app import FaultySimulator

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.support.simulator")
    add_arguments(parser)
    serve(parser.parse_args(), print, FaultySimulator)
