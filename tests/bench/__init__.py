"""Real servers for tests and benchmarks: `postgres_server`, `valkey_server`, a Chromium, a Prometheus."""

from tests.bench.errors import Missing
from tests.bench.postgres import postgres_server
from tests.bench.valkey import valkey_server

__all__ = ["Missing", "postgres_server", "valkey_server"]
