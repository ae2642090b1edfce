"""`python -m tests.support [--fast] [pytest arguments]`: start the servers and run the tests."""

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from tests.support import Missing, postgres_server, valkey_server
from tests.support.chromium import chromium, driver_environment
from tests.support.environment import clean_environment
from tests.support.message_catalog import gettext_folder
from tests.support.parts import plan
from tests.support.prometheus import prometheus
from tests.support.versions import playwright_version, postgres_version, program_version, valkey_version

T = TypeVar("T")


@dataclass
class Bench:
    """Servers and programs for the tests; `lacking` holds the marks whose tests cannot run."""

    stack: ExitStack
    missing: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)

    def get(self, name: str, make: Callable[[], T], version: Callable[[T], str], mark: str) -> T | None:
        """Find or download a program and print it; return None if it is missing."""
        try:
            found = make()
        except Missing as error:
            self.missing.append(str(error))
            self.lacking.append(mark)
            print(f"  missing: {error}", flush=True)
            return None
        print(f"  {name}: {version(found)}", flush=True)
        return found

    def serve(self, server: AbstractContextManager[str]) -> Callable[[], str]:
        """Return a function that starts a server for the duration of the run."""
        return lambda: self.stack.enter_context(server)


def set_up(bench: Bench, *, fast: bool) -> tuple[dict[str, str], str | None]:
    """Return the environment of the tests and the URL of PostgreSQL."""
    print("The tests run on", flush=True)
    data_dir = bench.stack.enter_context(tempfile.TemporaryDirectory(prefix="lcm-test-"))
    redis = bench.get("Valkey", bench.serve(valkey_server()), valkey_version, "integration")
    env = clean_environment(DATA_DIR=data_dir, REDIS_URL=redis)
    if fast:
        return env, None
    postgres = bench.get("PostgreSQL", bench.serve(postgres_server()), postgres_version, "postgres")
    programs = bench.get(
        "Prometheus", prometheus, lambda folder: program_version(f"{folder}/prometheus"), "prometheus"
    )
    bench.get("GNU gettext", gettext_folder, lambda folder: program_version(f"{folder}/xgettext"), "gettext")
    driver = bench.get("Playwright", driver_environment, playwright_version, "browser")
    browser = bench.get("Chromium", chromium, program_version, "browser")
    if programs:
        env["PATH"] = f"{programs}:{env['PATH']}"
    if browser:
        env["CHROMIUM"] = browser
    return {**env, **(driver or {})}, postgres


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    fast = "--fast" in arguments
    extra = [argument for argument in arguments if argument != "--fast"]
    with ExitStack() as stack:
        bench = Bench(stack)
        base, postgres = set_up(bench, fast=fast)
        if bench.missing and environ.get("CI") == "true":
            print("No test was run: with CI=true nothing may be missing", flush=True)
            return 1
        parts = plan(base=base, postgres=postgres, lacking=bench.lacking, fast=fast)
        outcomes = [part.run(extra) for part in parts]
    print("\nSummary")
    for line in [*outcomes, *(f"missing: {name}" for name in bench.missing)]:
        print(f"  {line}")
    return 1 if any(outcome.code for outcome in outcomes) else 0


if __name__ == "__main__":
    # SIGTERM raises an exception, so that the context managers stop the servers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:], os.environ))
    except KeyboardInterrupt:
        print("Stopped; the servers are gone")
        sys.exit(130)
