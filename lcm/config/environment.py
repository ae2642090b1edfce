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
            "Detailed error pages, static files without collectstatic. Never in production.",
        ),
        Setting(
            "SECRET_KEY",
            "text",
            "",
            f"Signs cookies; at least {MIN_SECRET_KEY} characters. Required unless `DEBUG` is on; "
            "then one is made and kept in `DATA_DIR`.",
        ),
        Setting(
            "DATA_DIR",
            "text",
            "var",
            "Folder for the SQLite database, the embedded Valkey, static files and metric files. "
            "A relative one is in the checkout. `manage.py up` closes it to other users.",
        ),
        Setting(
            "TIME_ZONE", "text", "UTC", "Zone in which pages show times to people who have not chosen one."
        ),
        Setting(
            "DEMO",
            "flag",
            False,
            "Load the demo fleet into an empty database when `manage.py up` starts. "
            "Refused unless `DEBUG` is on: the passwords of the demo are public.",
        ),
        Setting(
            "DEMO_LIVE",
            "flag",
            True,
            "With `DEMO`: simulators, a controller, sessions that come and go. Off: the fleet stands still.",
        ),
    ],
    "Database and broker": [
        Setting(
            "DATABASE_URL",
            "text",
            "",
            "`postgres://user:password@host/name`, with libpq's options such as `?sslmode=verify-full`. "
            "Empty: SQLite in `DATA_DIR`.",
        ),
        Setting(
            "DATABASE_POOL_SIZE",
            "whole number",
            8,
            "PostgreSQL connections each process keeps at most; 0 opens one per request. "
            "1 counts as 2: a worker renews its leases on a second connection.",
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
        Setting("WEB_WORKERS", "whole number", 2, "Web processes.", 1),
        Setting("WEB_THREADS", "whole number", 16, "Requests each web process works on at a time.", 1),
        Setting(
            "ALLOWED_HOSTS",
            "list",
            ["localhost", "127.0.0.1", "[::1]"],
            "Host names the web server answers to.",
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
            "LCM is reached by HTTPS: secure cookies, redirect, HSTS, `X-Forwarded-Proto` trusted.",
        ),
        Setting(
            "TRUSTED_PROXIES",
            "list of networks",
            [],
            "Addresses or networks of the proxies before LCM, such as `127.0.0.1,10.0.0.0/24`. "
            "LCM takes the client's address from `X-Forwarded-For` if, and only if, one of these connects.",
        ),
        Setting(
            "METRICS_TOKEN",
            "text",
            "",
            "Bearer token that `/metrics` of web and worker processes needs. "
            "Empty: only requests from this machine itself, not through a proxy, are answered.",
        ),
        Setting(
            "METRICS_HOST",
            "text",
            "",
            "Name under which Prometheus reaches this machine. Empty: what is listened on, or its own name.",
        ),
        Setting(
            "PROMETHEUS_MULTIPROC_DIR",
            "text",
            "",
            "Folder in which all processes of a machine count together; empty before they start. "
            "`manage.py up` sets it. Not set: each web process tells its own figures.",
        ),
        Setting("SESSION_HOURS", "whole number", 12, "Hours until a person has to log in again.", 1),
    ],
    "API": [
        Setting(
            "API_RATE",
            "text",
            "600/min",
            "Requests a person or token may make: a number for each `sec`, `min`, `hour` or `day`.",
        ),
        Setting(
            "CONTROLLER_RATE", "text", "6000/min", "Requests a controller may make, for all its workers."
        ),
        Setting(
            "API_LOGIN_RATE",
            "text",
            "10/min",
            "Wrong tokens, or wrong passwords for one name, an address may send.",
        ),
        Setting(
            "IDEMPOTENCY_HOURS", "whole number", 24, "How long answers to an `Idempotency-Key` are kept.", 1
        ),
        Setting(
            "FEED_HOURS", "whole number", 24, "How long the change feed that controllers watch is kept.", 1
        ),
        Setting(
            "WATCH_POLL",
            "seconds",
            1.0,
            "How often a web process looks at the change feed while Redis tells it nothing.",
            0.05,
        ),
        Setting("TOKEN_DAYS", "whole number", 90, "Days a new token lives when nobody says otherwise.", 1),
    ],
    "Background work": [
        Setting("WORKER_CONCURRENCY", "whole number", 2, "Processes of one Celery worker.", 1),
        Setting(
            "WORKER_METRICS_BIND",
            "text",
            "",
            "Address and port at which a worker answers Prometheus, on a machine without a web process.",
        ),
        Setting(
            "BEAT_HEARTBEAT_INTERVAL",
            "seconds",
            10.0,
            "How often beat proves that it and a worker are alive.",
            0.1,
        ),
        Setting(
            "BEAT_HEARTBEAT_MAX_AGE", "seconds", 60.0, "`/readyz` fails when the last proof is older.", 1
        ),
        Setting(
            "CLEANUP_INTERVAL",
            "seconds",
            3600.0,
            "How often expired idempotency answers, log-ins and jobs are removed.",
            1,
        ),
        Setting("JOB_DAYS", "whole number", 7, "Days that jobs are kept after they ended.", 1),
    ],
    "Capacity": [
        Setting("DECISION_DAYS", "whole number", 14, "Days that scheduling decisions are kept.", 1),
        Setting(
            "DECISIONS_PER_POOL", "whole number", 200_000, "Scheduling decisions kept of a pool at most.", 100
        ),
        Setting("TICK_INTERVAL", "seconds", 5.0, "How often each pool is looked at, at least.", 0.1),
        Setting("RECONCILE_INTERVAL", "seconds", 5.0, "How often slots and instances are compared.", 0.1),
        Setting(
            "HEARTBEAT_LATE",
            "seconds",
            120.0,
            "A ready worker is silent when no controller has spoken of it for this long.",
            1,
        ),
        Setting(
            "SESSION_ATTEMPTS",
            "whole number",
            3,
            "How often a session is tried when its lab cannot be made.",
            1,
        ),
        Setting(
            "SIMULATOR_URL",
            "text",
            "",
            "A CML simulator (`manage.py simulate_cml`) in which the runtime `simulated` starts its workers. "
            "Empty: they are rows without a CML.",
        ),
        Setting("PUBLIC_URL", "text", "http://127.0.0.1:8000", "Where workers and controllers reach LCM."),
    ],
    "Lifecycle of sessions": [
        Setting(
            "LIFECYCLE_INTERVAL",
            "seconds",
            10.0,
            "How often sessions that nobody moves on are looked for.",
            0.1,
        ),
        Setting(
            "OBSERVER_INTERVALS",
            "list of intervals",
            {},
            "Intervals of observers by name, instead of their own: `gpu-usage=60,licences=300`. "
            "For [observers of other packages](observers.md).",
        ),
        Setting(
            "PENDING_GRACE",
            "seconds",
            3600.0,
            "A session without a place expires this long after its start, or after its return to the queue.",
            1,
        ),
        Setting(
            "SCHEDULED_TIMEOUT",
            "seconds",
            900.0,
            "A placed session that no controller took up returns to the queue.",
            1,
        ),
        Setting(
            "INSTANTIATING_TIMEOUT", "seconds", 1800.0, "A lab that did not come up returns to the queue.", 1
        ),
        Setting(
            "NO_SHOW_AFTER", "seconds", 1800.0, "A lab that is ready and that nobody comes to is stopped.", 1
        ),
        Setting(
            "END_GRACE", "seconds", 900.0, "A session that still runs this long after its end is stopped.", 1
        ),
        Setting(
            "INTERRUPTION_TEARDOWN",
            "seconds",
            45.0,
            "Running sessions are observed and ended this long before their worker is taken away: a tick, an "
            "observation (a controller's `observe_seconds`) and the removal of the lab have to fit.",
            0,
        ),
        Setting(
            "STOPPING_TIMEOUT",
            "seconds",
            1200.0,
            "A session whose end nobody reports fails; longer than a controller's `stop_timeout_seconds`.",
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
            "How long a controller may take to answer a request to observe a session now.",
            1,
        ),
        Setting(
            "SAMPLE_BOOTED_SECONDS",
            "whole number",
            600,
            "Sessions whose nodes were up for less do not count, from the next observation on.",
            1,
        ),
        Setting(
            "REVIEW_INTERVAL",
            "seconds",
            900.0,
            "How often snoozed reviews are looked at and old waste is dropped.",
            1,
        ),
    ],
    "Live statistics": [
        Setting(
            "PROMETHEUS_URL",
            "text",
            "",
            "Where Prometheus answers: `http://prometheus:9090`. Empty: pages say that there is none.",
        ),
        Setting(
            "PROMETHEUS_STATUS_FILE",
            "text",
            "",
            "File with the reason why Prometheus does not answer yet. `manage.py up` sets it.",
        ),
        Setting("PROMETHEUS_TOKEN", "text", "", "Bearer token for Prometheus."),
        Setting("PROMETHEUS_USER", "text", "", "Name for Prometheus, where it asks for a password."),
        Setting("PROMETHEUS_PASSWORD", "text", "", "The password that belongs to `PROMETHEUS_USER`."),
        Setting(
            "PROMETHEUS_CA_FILE", "text", "", "Whom to trust for Prometheus. Empty: the system's authorities."
        ),
        Setting("PROMETHEUS_CLIENT_CERTIFICATE", "text", "", "File of a certificate to show to Prometheus."),
        Setting("PROMETHEUS_CLIENT_KEY", "text", "", "File of the key of `PROMETHEUS_CLIENT_CERTIFICATE`."),
        Setting(
            "PROMETHEUS_LABELS",
            "list",
            [],
            "Labels that LCM's series have on a Prometheus shared with others: `cluster=lab,env=prod`.",
        ),
        Setting("PROMETHEUS_TIMEOUT", "seconds", 5.0, "How long a query may take.", 0.1),
        Setting(
            "PROMETHEUS_SCRAPE_INTERVAL",
            "seconds",
            15.0,
            "How often Prometheus scrapes controllers. Figures older than two of these are stale.",
            0.1,
        ),
        Setting(
            "LIVE_STATS_WINDOW",
            "seconds",
            60.0,
            "Over which growth, speed, highest and mean are taken; at least four scrapes.",
            0.4,
        ),
        Setting("LIVE_STATS_STEP", "seconds", 15.0, "The smallest step of charts; at least a scrape.", 0.1),
        Setting("LIVE_STATS_CHUNK", "whole number", 500, "Kernels that one query asks for.", 1),
        Setting(
            "LIVE_STATS_CACHE",
            "seconds",
            5.0,
            "How long an answer is good for all who look at the same; 0 asks each time.",
            0,
        ),
        Setting(
            "SERVICE_DISCOVERY_INTERVAL",
            "seconds",
            15.0,
            "How often the list of what Prometheus scrapes is brought up to date.",
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
        pool = {"pool": {**POOL_OPTIONS, "max_size": max(pool_size, 2)}} if pool_size else {}
        defaults = {**POSTGRES_OPTIONS, **pool}
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
            "DEMO is on and DEBUG is off: the passwords of the demo are public, so the demo runs with "
            "DEBUG=true only. Unset DEMO in production."
        )
    if len(secret_key) < MIN_SECRET_KEY:
        raise ImproperlyConfigured(
            f"SECRET_KEY must be set to a random text of at least {MIN_SECRET_KEY} characters unless DEBUG "
            f"is on; it has {len(secret_key)}. Make one: "
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
        "LCM is configured by environment variables only. This page is written by",
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
