"""Django's database settings from `DATABASE_URL`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from environ import Env

# A lost server is detected within ten seconds.
POSTGRES_OPTIONS = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
POOL_OPTIONS = {"min_size": 1, "timeout": 10, "reconnect_timeout": 5}
# A connection of the pool is used for long, so psycopg prepares what runs more often than this.
PREPARE_THRESHOLD = 5
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32000;",
}


def database_settings(url: str, data_dir: Path, pool_size: int) -> dict[str, Any]:
    """Return Django's database settings for a URL; SQLite in the data folder if the URL is empty.

    Options in the URL, such as `?sslmode=verify-full`, override the defaults above.
    """
    parsed = _parse_database_url(url, data_dir)
    defaults: dict[str, Any] = SQLITE_OPTIONS
    if not parsed["ENGINE"].endswith("sqlite3"):
        pool = {**POOL_OPTIONS, "max_size": max(pool_size, 2)}
        pooled = {"pool": pool, "prepare_threshold": PREPARE_THRESHOLD} if pool_size else {}
        defaults = {**POSTGRES_OPTIONS, **pooled}
    return {**parsed, "OPTIONS": {**defaults, **parsed.get("OPTIONS", {})}}


def _parse_database_url(url: str, data_dir: Path) -> dict[str, Any]:
    if not url:
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(data_dir / "lcm.sqlite3")}
    try:
        parsed: dict[str, Any] = Env.db_url_config(url)
    except (ValueError, KeyError, ImproperlyConfigured) as error:
        raise ImproperlyConfigured("DATABASE_URL must be like postgres://user:password@host/name") from error
    if not parsed.get("ENGINE", "").endswith(("postgresql", "sqlite3")):
        raise ImproperlyConfigured("DATABASE_URL must name a PostgreSQL or SQLite database")
    return parsed
