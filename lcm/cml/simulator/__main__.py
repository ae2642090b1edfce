"""`python -m lcm.cml.simulator`: the simulator without Django."""

import argparse

from lcm.cml.simulator.command_line import add_arguments, serve

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m lcm.cml.simulator", description="CML simulator.")
    add_arguments(parser)
    serve(parser.parse_args(), lambda text: print(text, flush=True))
