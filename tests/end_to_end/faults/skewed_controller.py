"""A controller whose clock the harness shifts: `python -m tests.end_to_end.faults.skewed_controller FILE`."""

import sys
from pathlib import Path

from tests.end_to_end.faults.clock import ClockFile, shift_clock

if __name__ == "__main__":
    clock = ClockFile(Path(sys.argv.pop(1)))
    shift_clock(lambda: clock.offset)
    from lcm.controller.__main__ import main

    sys.exit(main())
