"""`python -m tests.bench [--fast] [pytest arguments]`: set up real servers and run the tests on them."""

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from tests.bench import Missing, postgres_server, valkey_server
from tests.bench.chromium import chromium
from tests.bench.environment import clean_environment
from tests.bench.parts import plan
from tests.bench.prometheus import prometheus


@dataclass
class Bench:
    """What the tests run on; what could not be had is in `missing`, the marks that need it in `lacking`."""

    servers: ExitStack
    missing: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)

    def get(self, make: Callable[[], AbstractContextManager[str]], mark: str) -> str | None:
        try:
            return self.servers.enter_context(make())
        except Missing as error:
            self.missing.append(str(error))
            self.lacking.append(mark)
            return None


@contextmanager
def chromium_path() -> Iterator[str]:
    yield chromium()


@contextmanager
def prometheus_folder() -> Iterator[str]:
    yield prometheus()


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    fast = "--fast" in arguments
    extra = [argument for argument in arguments if argument != "--fast"]
    with ExitStack() as servers:
        bench = Bench(servers)
        data_dir = servers.enter_context(tempfile.TemporaryDirectory(prefix="lcm-test-"))
        redis = bench.get(valkey_server, "integration")
        postgres = None if fast else bench.get(postgres_server, "postgres")
        browser = None if fast else bench.get(chromium_path, "browser")
        if not fast:
            bench.get(prometheus_folder, "prometheus")
        base = clean_environment(DATA_DIR=data_dir, REDIS_URL=redis, CHROMIUM=browser)
        parts = plan(base=base, postgres=postgres, lacking=bench.lacking, fast=fast)
        outcomes = [part.run(extra) for part in parts]
    print("\nSummary")
    for line in [*outcomes, *(f"missing: {what}" for what in bench.missing)]:
        print(f"  {line}")
    incomplete = bool(bench.missing) and environ.get("CI") == "true"
    return 1 if incomplete or any(outcome.code for outcome in outcomes) else 0


if __name__ == "__main__":
    # A stop ends the servers too: it leaves through the blocks that hold them.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:], os.environ))
    except KeyboardInterrupt:
        print("Stopped; the servers are gone")
        sys.exit(130)
