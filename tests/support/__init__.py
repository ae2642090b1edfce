"""Servers, fixtures and factories for tests and benchmarks."""

from tests.support.errors import Missing
from tests.support.postgres import postgres_server
from tests.support.valkey import valkey_server

__all__ = ["Missing", "postgres_server", "valkey_server"]
