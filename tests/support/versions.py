"""Versions of the servers and programs that the tests use."""

import os
import subprocess
import sys
from collections.abc import Mapping

import psycopg
import redis


def postgres_version(url: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None
    source = "TEST_DATABASE_URL" if os.environ.get("TEST_DATABASE_URL") else "a private server"
    return f"{row[0]}, {source}"


def valkey_version(url: str) -> str:
    with redis.Redis.from_url(url) as client:
        info = client.info("server")
    name = "valkey_version" if "valkey_version" in info else "redis_version"
    return f"{info[name]}, {info['executable']}"


def program_version(program: str) -> str:
    """Return the first line of the program's version output, and its path."""
    return f"{_first_line([program, '--version'], os.environ)}, {program}"


def playwright_version(variables: Mapping[str, str]) -> str:
    line = _first_line([sys.executable, "-m", "playwright", "--version"], {**os.environ, **variables})
    return ", ".join([line, *(f"{name}={value}" for name, value in variables.items())])


def _first_line(argv: list[str], env: Mapping[str, str]) -> str:
    result = subprocess.run(argv, env=env, capture_output=True, text=True)
    return next(iter((result.stdout or result.stderr).strip().splitlines()), "version unknown")
