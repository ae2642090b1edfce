"""All settings that LCM reads from environment variables.

`settings.py` takes its values from here, and `docs/configuration.md` is generated from here.
"""

from __future__ import annotations

import math
import os
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal

from django.core.exceptions import ImproperlyConfigured
from environ import Env

MIN_SECRET_KEY = 32

Kind = Literal["text", "flag", "whole number", "seconds", "list", "list of networks", "list of intervals"]


@dataclass(frozen=True)
class Setting:
    """An environment variable with its kind, default, help text and limits."""

    name: str
    kind: Kind
    default: Any
    help: str
    minimum: float | None = None
    choices: tuple[str, ...] = ()

    def read(self) -> Any:
        """Return the validated value from the environment, or the default if it is unset or empty."""
        text = os.environ.get(self.name, "").strip()
        if not text:
            return self.default
        try:
            value = _PARSERS[self.kind](text)
        except ValueError as error:
            raise ImproperlyConfigured(f"{self.name} must be a {self.kind}, but is “{text}”") from error
        if self.minimum is not None and not value >= self.minimum:
            raise ImproperlyConfigured(f"{self.name} is {text}, but must be at least {self.minimum:g}")
        if self.choices and value not in self.choices:
            raise ImproperlyConfigured(
                f"{self.name} must be one of {', '.join(self.choices)}, but is “{text}”"
            )
        return value


_FLAGS = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}


def _flag(text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise ValueError(text)
    return _FLAGS[text.lower()]


def _seconds(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _seconds_by_name(text: str) -> dict[str, float]:
    found = {}
    for item in _items(text):
        name, _, seconds = item.partition("=")
        found[name.strip()] = _seconds(seconds)
        if not found[name.strip()] > 0:
            raise ValueError(item)
    return found


_PARSERS: dict[Kind, Callable[[str], Any]] = {
    "text": str,
    "flag": _flag,
    "whole number": int,
    "seconds": _seconds,
    "list": _items,
    "list of networks": lambda text: [ip_network(item, strict=False) for item in _items(text)],
    "list of intervals": _seconds_by_name,
}


GROUPS: dict[str, list[Setting]] = {
    "Basics": [
        Setting(
            "DEBUG",
            "flag",
            False,
            "Detailed error pages and static files without collectstatic. Never use it in production.",
        ),
        Setting(
            "SECRET_KEY",
            "text",
            "",
            f"Signs cookies; at least {MIN_SECRET_KEY} characters. Required unless `DEBUG` is on; "
            "then LCM creates one in `DATA_DIR`.",
        ),
        Setting(
            "DATA_DIR",
            "text",
            "var",
            "Folder for the SQLite database, the embedded Valkey, static files and metric files. "
            "A relative path is relative to the checkout. `manage.py up` makes it private to its user.",
        ),
        Setting("TIME_ZONE", "text", "UTC", "Time zone of pages for people who have not chosen one."),
        Setting(
            "DEMO",
            "flag",
            False,
            "Load the demo fleet into an empty database when `manage.py up` starts. "
            "Requires `DEBUG`: the demo passwords are public.",
        ),
        Setting(
            "DEMO_LIVE",
            "flag",
            True,
            "With `DEMO`: run simulators, a controller and changing sessions. Off: static demo data.",
        ),
    ],
    "Database and broker": [
        Setting(
            "DATABASE_URL",
            "text",
            "",
            "`postgres://user:password@host/name`, with libpq options such as `?sslmode=verify-full`. "
            "Empty: SQLite in `DATA_DIR`.",
        ),
        Setting(
            "DATABASE_POOL_SIZE",
            "whole number",
            8,
            "Maximum PostgreSQL connections per process; 0 opens one per request. "
            "1 is treated as 2: a worker renews its leases on a second connection.",
            0,
        ),
        Setting(
            "REDIS_URL",
            "text",
            "",
            "Redis or Valkey: `redis://host:6379/0`, with TLS `rediss://…/0?ssl_cert_reqs=required`. "
            "Empty: an embedded Valkey that `manage.py up` starts.",
        ),
    ],
    "Web": [
        Setting("WEB_BIND", "text", "127.0.0.1:8000", "Address and port the web server listens on."),
        Setting("WEB_WORKERS", "whole number", 2, "Number of web processes.", 1),
        Setting("WEB_THREADS", "whole number", 16, "Concurrent requests per web process.", 1),
        Setting(
            "WATCH_BIND",
            "text",
            "",
            "Address and port the watch process listens on. Empty: the host of `WEB_BIND` and the next port.",
        ),
        Setting(
            "WATCH_URL",
            "text",
            "",
            "Public URL of the watch process, such as `https://watch.example.org`. Not needed if a proxy "
            "routes `/api/internal/watch` to it, or if controllers reach it at `WATCH_BIND` without a proxy.",
        ),
        Setting(
            "ALLOWED_HOSTS",
            "list",
            ["localhost", "127.0.0.1", "[::1]"],
            "Host names that the web server accepts.",
        ),
        Setting(
            "CSRF_TRUSTED_ORIGINS",
            "list",
            [],
            "Origins such as `https://lcm.example.org` that may post forms through a proxy.",
        ),
        Setting(
            "HTTPS",
            "flag",
            False,
            "LCM is served over HTTPS: secure cookies, redirect, HSTS, `X-Forwarded-Proto` is trusted.",
        ),
        Setting(
            "TRUSTED_PROXIES",
            "list of networks",
            [],
            "Addresses or networks of the proxies in front of LCM, such as `127.0.0.1,10.0.0.0/24`. "
            "LCM trusts `X-Forwarded-For` only on connections from them.",
        ),
        Setting(
            "METRICS_TOKEN",
            "text",
            "",
            "Bearer token required for `/metrics` of web, watch and worker processes. "
            "Empty: only direct requests from this machine are allowed.",
        ),
        Setting(
            "METRICS_HOST",
            "text",
            "",
            "Host name at which Prometheus reaches this machine. Empty: the bind address, or the host name.",
        ),
        Setting(
            "PROMETHEUS_MULTIPROC_DIR",
            "text",
            "",
            "Folder in which the web and worker processes of a machine share metrics; it must be empty at "
            "startup. `manage.py up` sets it. Not set: each web process reports only its own metrics.",
        ),
        Setting("LOGIN_HOURS", "whole number", 12, "Hours until a person has to sign in again.", 1),
    ],
    "API": [
        Setting(
            "API_RATE",
            "text",
            "600/min",
            "Rate limit of a person or token: requests per `sec`, `min`, `hour` or `day`.",
        ),
        Setting(
            "CONTROLLER_RATE", "text", "6000/min", "Rate limit of a controller, for all its workers together."
        ),
        Setting(
            "LOGIN_FAILURE_RATE",
            "text",
            "10/min",
            "Rate limit of wrong tokens, or wrong passwords for one user name, per client address.",
        ),
        Setting(
            "IDEMPOTENCY_HOURS",
            "whole number",
            24,
            "Hours that responses to an `Idempotency-Key` are kept.",
            1,
        ),
        Setting(
            "CHANGE_FEED_HOURS", "whole number", 24, "Hours that entries of the change feed are kept.", 1
        ),
        Setting(
            "WATCH_POLL_INTERVAL",
            "seconds",
            1.0,
            "How often the watch process polls the change feed without a notification from Redis.",
            0.05,
        ),
        Setting("TOKEN_DAYS", "whole number", 90, "Default lifetime of new tokens in days.", 1),
    ],
    "Background work": [
        Setting("WORKER_CONCURRENCY", "whole number", 2, "Processes per Celery worker.", 1),
        Setting(
            "WORKER_METRICS_BIND",
            "text",
            "",
            "Address and port of a worker's metrics, for machines without a web process.",
        ),
        Setting(
            "BEAT_HEARTBEAT_INTERVAL",
            "seconds",
            10.0,
            "How often beat and a worker record a heartbeat.",
            0.1,
        ),
        Setting(
            "BEAT_HEARTBEAT_MAX_AGE", "seconds", 60.0, "`/readyz` fails if the last heartbeat is older.", 1
        ),
        Setting(
            "CLEANUP_INTERVAL",
            "seconds",
            3600.0,
            "How often expired idempotent responses, sign-in sessions and jobs are removed.",
            1,
        ),
        Setting("JOB_DAYS", "whole number", 7, "Days that ended jobs are kept.", 1),
    ],
    "Capacity": [
        Setting("DECISION_DAYS", "whole number", 14, "Days that scheduling decisions are kept.", 1),
        Setting(
            "DECISIONS_PER_POOL",
            "whole number",
            200_000,
            "Maximum number of scheduling decisions kept per pool.",
            100,
        ),
        Setting("TICK_INTERVAL", "seconds", 5.0, "Interval between scheduling cycles of a pool.", 0.1),
        Setting("RECONCILE_INTERVAL", "seconds", 5.0, "How often slots are reconciled with instances.", 0.1),
        Setting(
            "HEARTBEAT_TIMEOUT",
            "seconds",
            120.0,
            "A ready worker counts as silent if no controller has reported it for this long.",
            1,
        ),
        Setting(
            "SESSION_ATTEMPTS",
            "whole number",
            3,
            "Maximum attempts to start the lab of a session.",
            1,
        ),
        Setting(
            "SIMULATOR_URL",
            "text",
            "",
            "URL of a CML simulator (`manage.py simulate_cml`) for the workers of the runtime `simulated`. "
            "Empty: these workers have no CML.",
        ),
        Setting(
            "PUBLIC_URL", "text", "http://127.0.0.1:8000", "URL at which workers and controllers reach LCM."
        ),
    ],
    "Lifecycle of sessions": [
        Setting(
            "LIFECYCLE_INTERVAL",
            "seconds",
            10.0,
            "How often sessions with an expired timeout are processed.",
            0.1,
        ),
        Setting(
            "OBSERVER_INTERVALS",
            "list of intervals",
            {},
            "Intervals that override the defaults of observers, by name: `gpu-usage=60,licences=300`. "
            "See [Observers](observers.md).",
        ),
        Setting(
            "PENDING_GRACE",
            "seconds",
            3600.0,
            "A session without a slot expires this long after its start or its return to the queue.",
            1,
        ),
        Setting(
            "SCHEDULED_TIMEOUT",
            "seconds",
            900.0,
            "A scheduled session returns to the queue if no controller starts it for this long.",
            1,
        ),
        Setting(
            "INSTANTIATING_TIMEOUT",
            "seconds",
            1800.0,
            "A session returns to the queue if its lab does not start for this long.",
            1,
        ),
        Setting(
            "NO_SHOW_AFTER",
            "seconds",
            1800.0,
            "A ready session is stopped if its user does not arrive for this long.",
            1,
        ),
        Setting(
            "END_GRACE",
            "seconds",
            900.0,
            "A session that is still running this long after its end is stopped.",
            1,
        ),
        Setting(
            "INTERRUPTION_TEARDOWN",
            "seconds",
            45.0,
            "Running sessions are observed and stopped this long before their worker terminates: a tick, an "
            "observation (a controller's `observe_seconds`) and the removal of the lab must fit in.",
            0,
        ),
        Setting(
            "STOPPING_TIMEOUT",
            "seconds",
            1200.0,
            "A stopping session fails after this time; must exceed a controller's `stop_timeout_seconds`.",
            1,
        ),
    ],
    "Usage and fair share": [
        Setting("USAGE_RECORD_INTERVAL", "seconds", 300.0, "How often usage is recorded.", 0.1),
        Setting(
            "USAGE_AGGREGATION_INTERVAL",
            "seconds",
            3600.0,
            "How often records are summed into daily buckets.",
            0.1,
        ),
        Setting(
            "FAIR_SHARE_INTERVAL", "seconds", 3600.0, "How often fair-share factors are calculated.", 0.1
        ),
        Setting("USAGE_RECORD_DAYS", "whole number", 90, "Days that usage records are kept.", 1),
        Setting("USAGE_BUCKET_DAYS", "whole number", 730, "Days that daily usage is kept.", 1),
    ],
    "Observations": [
        Setting(
            "OBSERVE_TIMEOUT",
            "seconds",
            120.0,
            "How long a controller may take to complete a requested observation.",
            1,
        ),
        Setting(
            "SAMPLE_MIN_UPTIME_SECONDS",
            "whole number",
            600,
            "Sessions whose nodes were up for less are excluded. Takes effect at the next observation.",
            1,
        ),
        Setting(
            "REVIEW_INTERVAL",
            "seconds",
            900.0,
            "How often snoozed reviews are checked and outdated waste is dropped.",
            1,
        ),
    ],
    "Live statistics": [
        Setting(
            "PROMETHEUS_URL",
            "text",
            "",
            "URL of Prometheus: `http://prometheus:9090`. Empty: pages show that it is not configured.",
        ),
        Setting(
            "PROMETHEUS_STATUS_FILE",
            "text",
            "",
            "File with the reason why Prometheus does not answer yet. `manage.py up` sets it.",
        ),
        Setting("PROMETHEUS_TOKEN", "text", "", "Bearer token for Prometheus."),
        Setting("PROMETHEUS_USER", "text", "", "User name for Prometheus."),
        Setting("PROMETHEUS_PASSWORD", "text", "", "Password of `PROMETHEUS_USER`."),
        Setting(
            "PROMETHEUS_CA_FILE", "text", "", "CA certificates to verify Prometheus. Empty: the system's."
        ),
        Setting(
            "PROMETHEUS_CLIENT_CERTIFICATE", "text", "", "File with a client certificate for Prometheus."
        ),
        Setting("PROMETHEUS_CLIENT_KEY", "text", "", "File with the key of `PROMETHEUS_CLIENT_CERTIFICATE`."),
        Setting(
            "PROMETHEUS_LABELS",
            "list",
            [],
            "Labels that select LCM's series on a shared Prometheus: `cluster=lab,env=prod`.",
        ),
        Setting("PROMETHEUS_TIMEOUT", "seconds", 5.0, "Timeout of a query.", 0.1),
        Setting(
            "PROMETHEUS_SCRAPE_INTERVAL",
            "seconds",
            15.0,
            "How often Prometheus scrapes controllers. Values older than two intervals are stale.",
            0.1,
        ),
        Setting(
            "LIVE_STATS_WINDOW",
            "seconds",
            60.0,
            "Window for rates, maxima and means; at least four scrape intervals.",
            0.4,
        ),
        Setting(
            "LIVE_STATS_STEP", "seconds", 15.0, "Smallest step of charts; at least one scrape interval.", 0.1
        ),
        Setting("LIVE_STATS_CHUNK", "whole number", 500, "Kernels per query.", 1),
        Setting(
            "LIVE_STATS_CACHE_SECONDS",
            "seconds",
            5.0,
            "How long query results are cached; 0 disables the cache.",
            0,
        ),
        Setting(
            "SERVICE_DISCOVERY_INTERVAL",
            "seconds",
            15.0,
            "How often the list of Prometheus targets is updated.",
            0.1,
        ),
    ],
    "Logs": [
        Setting(
            "LOG_FORMAT",
            "text",
            "console",
            "`console` for people, `json` for machines.",
            choices=("console", "json"),
        ),
        Setting(
            "LOG_LEVEL",
            "text",
            "INFO",
            "`DEBUG`, `INFO`, `WARNING` or `ERROR`.",
            choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        ),
    ],
}


def read_settings() -> dict[str, Any]:
    """Return all values by name, from the environment and the defaults above."""
    return {setting.name: setting.read() for group in GROUPS.values() for setting in group}


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
    found = _parse_database_url(url, data_dir)
    defaults: dict[str, Any] = SQLITE_OPTIONS
    if not found["ENGINE"].endswith("sqlite3"):
        pool = {**POOL_OPTIONS, "max_size": max(pool_size, 2)}
        pooled = {"pool": pool, "prepare_threshold": PREPARE_THRESHOLD} if pool_size else {}
        defaults = {**POSTGRES_OPTIONS, **pooled}
    return {**found, "OPTIONS": {**defaults, **found.get("OPTIONS", {})}}


def _parse_database_url(url: str, data_dir: Path) -> dict[str, Any]:
    if not url:
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(data_dir / "lcm.sqlite3")}
    try:
        found: dict[str, Any] = Env.db_url_config(url)
    except (ValueError, KeyError, ImproperlyConfigured) as error:
        raise ImproperlyConfigured("DATABASE_URL must be like postgres://user:password@host/name") from error
    if not found.get("ENGINE", "").endswith(("postgresql", "sqlite3")):
        raise ImproperlyConfigured("DATABASE_URL must name a PostgreSQL or SQLite database")
    return found


def reject_unsafe_settings(*, debug: bool, demo: bool, secret_key: str) -> None:
    """Raise ImproperlyConfigured for settings that would expose a production server."""
    if debug:
        return
    if demo:
        raise ImproperlyConfigured(
            "DEMO is on and DEBUG is off. The demo requires DEBUG=true, because its passwords are public. "
            "Unset DEMO in production."
        )
    if len(secret_key) < MIN_SECRET_KEY:
        raise ImproperlyConfigured(
            f"SECRET_KEY must be set to a random text of at least {MIN_SECRET_KEY} characters unless DEBUG "
            f"is on; it has {len(secret_key)}. Generate one: "
            "python3 -c 'import secrets; print(secrets.token_urlsafe(48))'"
        )


def time_zone_from(name: str) -> str:
    if name not in zoneinfo.available_timezones():
        raise ImproperlyConfigured(f"TIME_ZONE must be a name such as Europe/Vienna, but is “{name}”")
    return name


def settings_reference() -> str:
    """Return the Markdown text of docs/configuration.md."""
    lines = [
        "# Configuration",
        "",
        "LCM is configured by environment variables only. This page is generated by",
        "`manage.py configuration_reference` from `lcm/config/environment.py`.",
        "",
    ]
    for title, group in GROUPS.items():
        lines += [f"## {title}", "", "| variable | kind | default | what it does |", "|---|---|---|---|"]
        lines += [f"| `{s.name}` | {s.kind} | {_format_default(s.default)} | {s.help} |" for s in group]
        lines.append("")
    return "\n".join(lines)


def _format_default(value: Any) -> str:
    if isinstance(value, bool):
        return "`on`" if value else "`off`"
    if isinstance(value, list):
        return f"`{','.join(value)}`" if value else "empty"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{value}`" if value not in ("", {}) else "empty"
