"""`python -m tests.faults.skewed_controller CLOCK_FILE`: a controller whose clock the harness can shift."""

import sys
from pathlib import Path

from tests.faults.clock import ClockFile, shift_clock

if __name__ == "__main__":
    clock = ClockFile(Path(sys.argv.pop(1)))
    shift_clock(lambda: clock.offset)
    from lcm.controller.__main__ import main

    sys.exit(main())
