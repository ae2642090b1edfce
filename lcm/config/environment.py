"""All settings that LCM reads from environment variables.

`settings.py` takes its values from here, and `docs/configuration.md` is generated from here.
"""

from __future__ import annotations

import os
import zoneinfo
from typing import Annotated, Any

from django.core.exceptions import ImproperlyConfigured
from pydantic import BaseModel, ValidationError

from lcm.config.setting_types import Flag, Intervals, Items, Networks, Rate, Text, choice, seconds, whole
from lcm.domain.validation import problems_of

MIN_SECRET_KEY = 32


class Group(BaseModel):
    """Settings with a common title, the docstring. The docstring of a setting explains it."""


class Basics(Group):
    """Basics"""

    DEBUG: Flag = False
    """Detailed error pages and static files without collectstatic. Never use it in production."""
    SECRET_KEY: Text = ""
    """Signs cookies and links; the secrets of webhooks are derived from it. At least 32 characters. Required
    unless `DEBUG` is on; then LCM creates one in `DATA_DIR`."""
    DATA_DIR: Text = "var"
    """Folder for the SQLite database, the embedded Valkey, static files and metric files. A relative path is
    relative to the checkout. `manage.py up` makes it private to its user."""
    TIME_ZONE: Text = "UTC"
    """Time zone of pages for people who have not chosen one."""
    DEMO: Flag = False
    """Load the demo fleet into an empty database when `manage.py up` starts. Requires `DEBUG`: the demo
    passwords are public."""
    DEMO_LIVE: Flag = True
    """With `DEMO`: run simulators, a controller and changing sessions. Off: static demo data."""


class DatabaseAndBroker(Group):
    """Database and broker"""

    DATABASE_URL: Text = ""
    """`postgres://user:password@host/name`, with libpq options such as `?sslmode=verify-full`. Empty: SQLite
    in `DATA_DIR`."""
    DATABASE_POOL_SIZE: Annotated[int, whole(0)] = 8
    """Maximum PostgreSQL connections per process; 0 opens one per request. 1 is treated as 2: a worker
    renews its leases on a second connection."""
    REDIS_URL: Text = ""
    """Redis or Valkey: `redis://host:6379/0`, with TLS `rediss://…/0?ssl_cert_reqs=required`. Empty: an
    embedded Valkey that `manage.py up` starts."""


class Web(Group):
    """Web"""

    WEB_BIND: Text = "127.0.0.1:8000"
    """Address and port the web server listens on."""
    WEB_WORKERS: Annotated[int, whole(1)] = 2
    """Number of web processes."""
    WEB_THREADS: Annotated[int, whole(1)] = 16
    """Concurrent requests per web process."""
    WATCH_BIND: Text = ""
    """Address and port the watch process listens on. Empty: the host of `WEB_BIND` and the next port."""
    WATCH_URL: Text = ""
    """Public URL of the watch process, such as `https://watch.example.org`. Not needed if a proxy routes
    `/api/internal/watch` to it, or if controllers reach it at `WATCH_BIND` without a proxy."""
    ALLOWED_HOSTS: Items = ["localhost", "127.0.0.1", "[::1]"]
    """Host names that the web server accepts."""
    CSRF_TRUSTED_ORIGINS: Items = []
    """Origins such as `https://lcm.example.org` that may post forms through a proxy."""
    HTTPS: Flag = False
    """LCM is served over HTTPS: secure cookies, redirect, HSTS, `X-Forwarded-Proto` is trusted."""
    TRUSTED_PROXIES: Networks = []
    """Addresses or networks of the proxies in front of LCM, such as `127.0.0.1,10.0.0.0/24`. LCM trusts
    `X-Forwarded-For` only on connections from them."""
    METRICS_TOKEN: Text = ""
    """Bearer token required for `/metrics` of web, watch and worker processes. Empty: only direct requests
    from this machine are allowed."""
    METRICS_HOST: Text = ""
    """Host name at which Prometheus reaches this machine. Empty: the bind address, or the host name."""
    PROMETHEUS_MULTIPROC_DIR: Text = ""
    """Folder in which the web and worker processes of a machine share metrics; it must be empty at startup.
    `manage.py up` sets it. Not set: each web process reports only its own metrics."""
    LOGIN_HOURS: Annotated[int, whole(1)] = 12
    """Hours until a person has to sign in again."""
    PASSWORD_LINK_HOURS: Annotated[int, whole(1)] = 72
    """Hours that a link to set a password is valid."""


class Mail(Group):
    """E-mail"""

    EMAIL_URL: Text = ""
    """Mail server: `smtp+tls://user:password@mail.example.org:587` for STARTTLS, `smtp+ssl://…:465` for TLS,
    `smtp://…:25` for none. Special characters of the password are percent-encoded. Empty: LCM sends no
    e-mail."""
    EMAIL_FROM: Text = "lcm@localhost"
    """Sender of e-mails."""


class Api(Group):
    """API"""

    API_RATE: Rate = "600/min"
    """Rate limit of a person or token: requests per `sec`, `min`, `hour` or `day`."""
    CONTROLLER_RATE: Rate = "6000/min"
    """Rate limit of a controller, for all its workers together."""
    LOGIN_FAILURE_RATE: Rate = "10/min"
    """Rate limit of wrong tokens, or wrong passwords for one user name, per client address."""
    IDEMPOTENCY_HOURS: Annotated[int, whole(1)] = 24
    """Hours that responses to an `Idempotency-Key` are kept."""
    CHANGE_FEED_HOURS: Annotated[int, whole(1)] = 24
    """Hours that entries of the change feed are kept."""
    WATCH_POLL_INTERVAL: Annotated[float, seconds(0.05)] = 1.0
    """How often the watch process polls the change feed without a notification from Redis."""
    TOKEN_DAYS: Annotated[int, whole(1)] = 90
    """Default lifetime of new tokens in days."""


class BackgroundWork(Group):
    """Background work"""

    WORKER_CONCURRENCY: Annotated[int, whole(1)] = 2
    """Processes per Celery worker."""
    WORKER_METRICS_BIND: Text = ""
    """Address and port of a worker's metrics, for machines without a web process."""
    BEAT_HEARTBEAT_INTERVAL: Annotated[float, seconds(0.1)] = 10.0
    """How often beat and a worker record a heartbeat."""
    BEAT_HEARTBEAT_MAX_AGE: Annotated[float, seconds(1)] = 60.0
    """`/readyz` fails if the last heartbeat is older."""
    CLEANUP_INTERVAL: Annotated[float, seconds(1)] = 3600.0
    """How often expired idempotent responses, sign-in sessions and jobs are removed."""
    JOB_DAYS: Annotated[int, whole(1)] = 7
    """Days that ended jobs are kept."""


class Events(Group):
    """Events"""

    EVENT_INTERVAL: Annotated[float, seconds(0.1)] = 2.0
    """How often new events are compared with rules and subscriptions, and due deliveries are sent."""
    ENDING_SOON: Annotated[float, seconds(0)] = 900.0
    """The event `session.ending_soon` occurs this long before the end of a session; 0: never."""
    WEBHOOK_ALLOWED_NETWORKS: Networks = []
    """Internal networks in which webhooks may be, such as `10.20.0.0/16`; there also by http. Without this
    setting LCM sends to public addresses only."""
    WEBHOOK_CA_FILE: Text = ""
    """File with CA certificates that LCM trusts for webhooks, in addition to the public ones."""


class Capacity(Group):
    """Capacity"""

    DECISION_DAYS: Annotated[int, whole(1)] = 14
    """Days that scheduling decisions are kept."""
    DECISIONS_PER_POOL: Annotated[int, whole(100)] = 200000
    """Maximum number of scheduling decisions kept per pool."""
    TICK_INTERVAL: Annotated[float, seconds(0.1)] = 5.0
    """Interval between scheduling cycles of a pool."""
    RECONCILE_INTERVAL: Annotated[float, seconds(0.1)] = 5.0
    """How often slots are reconciled with instances."""
    HEARTBEAT_TIMEOUT: Annotated[float, seconds(1)] = 120.0
    """A ready worker counts as silent if no controller has reported it for this long."""
    SESSION_ATTEMPTS: Annotated[int, whole(1)] = 3
    """Maximum attempts to start the lab of a session."""
    SIMULATOR_URL: Text = ""
    """URL of a CML simulator (`manage.py simulate_cml`) for the workers of the runtime `simulated`. Empty:
    these workers have no CML."""
    PUBLIC_URL: Text = "http://127.0.0.1:8000"
    """URL at which workers and controllers reach LCM. E-mails link to it."""
    DOCUMENTATION_URL: Text = ""
    """URL of the documentation, for the “Help” links of pages. Empty: LCM serves the site that `make docs`
    built, or else the files of the folder `docs`."""


class LifecycleOfSessions(Group):
    """Lifecycle of sessions"""

    LIFECYCLE_INTERVAL: Annotated[float, seconds(0.1)] = 10.0
    """How often sessions with an expired timeout are processed."""
    OBSERVER_INTERVALS: Intervals = {}
    """Intervals that override the defaults of observers, by name: `gpu-usage=60,licences=300`. See
    [Observers](observers.md)."""
    PENDING_GRACE: Annotated[float, seconds(1)] = 3600.0
    """A session without a slot expires this long after its start or its return to the queue."""
    SCHEDULED_TIMEOUT: Annotated[float, seconds(1)] = 900.0
    """A scheduled session returns to the queue if no controller starts it for this long."""
    INSTANTIATING_TIMEOUT: Annotated[float, seconds(1)] = 1800.0
    """A session returns to the queue if its lab does not start for this long."""
    NO_SHOW_AFTER: Annotated[float, seconds(1)] = 1800.0
    """A ready session is stopped if its user does not arrive for this long."""
    END_GRACE: Annotated[float, seconds(1)] = 900.0
    """A session that is still running this long after its end is stopped."""
    INTERRUPTION_TEARDOWN: Annotated[float, seconds(0)] = 45.0
    """Running sessions are observed and stopped this long before their worker terminates: a tick, an
    observation (a controller's `observe_seconds`) and the removal of the lab must fit in."""
    STOPPING_TIMEOUT: Annotated[float, seconds(1)] = 1200.0
    """A stopping session fails after this time; must exceed a controller's `stop_timeout_seconds`."""


class UsageAndFairShare(Group):
    """Usage and fair share"""

    USAGE_RECORD_INTERVAL: Annotated[float, seconds(0.1)] = 300.0
    """How often usage is recorded."""
    USAGE_AGGREGATION_INTERVAL: Annotated[float, seconds(0.1)] = 3600.0
    """How often records are summed into daily buckets."""
    FAIR_SHARE_INTERVAL: Annotated[float, seconds(0.1)] = 3600.0
    """How often fair-share factors are calculated."""
    USAGE_RECORD_DAYS: Annotated[int, whole(1)] = 90
    """Days that usage records are kept."""
    USAGE_BUCKET_DAYS: Annotated[int, whole(1)] = 730
    """Days that daily usage is kept."""


class Observations(Group):
    """Observations"""

    OBSERVE_TIMEOUT: Annotated[float, seconds(1)] = 120.0
    """How long a controller may take to complete a requested observation."""
    SAMPLE_MIN_UPTIME_SECONDS: Annotated[int, whole(1)] = 600
    """Sessions whose nodes were up for less are excluded. Takes effect at the next observation."""
    REVIEW_INTERVAL: Annotated[float, seconds(1)] = 900.0
    """How often snoozed reviews are checked and outdated waste is dropped."""


class LiveStatistics(Group):
    """Live statistics"""

    PROMETHEUS_URL: Text = ""
    """URL of Prometheus: `http://prometheus:9090`. Empty: only Admins see the panels of live statistics."""
    PROMETHEUS_STATUS_FILE: Text = ""
    """File with the reason why Prometheus does not respond yet. `manage.py up` sets it."""
    PROMETHEUS_TOKEN: Text = ""
    """Bearer token for Prometheus."""
    PROMETHEUS_USER: Text = ""
    """User name for Prometheus."""
    PROMETHEUS_PASSWORD: Text = ""
    """Password of `PROMETHEUS_USER`."""
    PROMETHEUS_CA_FILE: Text = ""
    """CA certificates to verify Prometheus. Empty: the system's."""
    PROMETHEUS_CLIENT_CERTIFICATE: Text = ""
    """File with a client certificate for Prometheus."""
    PROMETHEUS_CLIENT_KEY: Text = ""
    """File with the key of `PROMETHEUS_CLIENT_CERTIFICATE`."""
    PROMETHEUS_LABELS: Items = []
    """Labels that select LCM's series on a shared Prometheus: `cluster=lab,env=prod`."""
    PROMETHEUS_TIMEOUT: Annotated[float, seconds(0.1)] = 5.0
    """Timeout of a query."""
    PROMETHEUS_SCRAPE_INTERVAL: Annotated[float, seconds(0.1)] = 15.0
    """How often Prometheus scrapes controllers. Values older than two intervals are stale."""
    LIVE_STATS_WINDOW: Annotated[float, seconds(0.4)] = 60.0
    """Window for rates, maxima and means; at least four scrape intervals."""
    LIVE_STATS_STEP: Annotated[float, seconds(0.1)] = 15.0
    """Smallest step of charts; at least one scrape interval."""
    LIVE_STATS_CHUNK: Annotated[int, whole(1)] = 500
    """Kernels per query."""
    LIVE_STATS_CACHE_SECONDS: Annotated[float, seconds(0)] = 5.0
    """How long query results are cached; 0 disables the cache."""
    SERVICE_DISCOVERY_INTERVAL: Annotated[float, seconds(0.1)] = 15.0
    """How often the list of Prometheus targets is updated."""


class Logs(Group):
    """Logs"""

    LOG_FORMAT: Annotated[str, choice("console", "json")] = "console"
    """`console` for people, `json` for machines."""
    LOG_LEVEL: Annotated[str, choice("DEBUG", "INFO", "WARNING", "ERROR")] = "INFO"
    """`DEBUG`, `INFO`, `WARNING` or `ERROR`."""


GROUPS = Group.__subclasses__()


def read_settings() -> dict[str, Any]:
    """Return all values by name, from the environment and the defaults above; empty counts as not set."""
    return {name: value for group in GROUPS for name, value in vars(_read(group)).items()}


def _read(group: type[Group]) -> Group:
    texts = {name: text for name in group.model_fields if (text := os.environ.get(name, "").strip())}
    try:
        return group.model_validate(texts)
    except ValidationError as error:
        sentences = [
            f"{each.path[0]} {each.be}"
            if each.kind == "refused"
            else f"{each.path[0]} must be {each.be}, but is “{each.value}”"
            for each in problems_of(error)
        ]
        raise ImproperlyConfigured(". ".join(sentences)) from error


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
