"""`python -m tests.benchmarks [name …]`: run benchmarks on a private PostgreSQL, then on SQLite.

Each benchmark is a module with `main()` and runs in its own process on its own database.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

from tests.support import postgres_server, valkey_server
from tests.support.environment import clean_environment

BENCHMARKS = (
    "lists", "pages", "paint", "tick", "placement", "usage", "observations", "watch", "controller",
    "live_stats", "notifications",
)  # fmt: skip


def main(names: list[str]) -> int:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}.")
        return 2
    worst = 0
    with valkey_server() as redis:
        base = clean_environment(REDIS_URL=redis, LOG_LEVEL="WARNING", DATABASE_POOL_SIZE="0")
        for name in names or BENCHMARKS:
            with tempfile.TemporaryDirectory(prefix="lcm-bench-") as folder:
                mine = {**base, "DATA_DIR": folder}
                with postgres_server(durable=True) as postgres:
                    worst = max(worst, _run(name, {**mine, "DATABASE_URL": postgres}))
                worst = max(worst, _run(name, mine))
    return worst


def _run(name: str, env: dict[str, str]) -> int:
    return subprocess.run([sys.executable, "-m", f"tests.benchmarks.{name}"], env=env).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
