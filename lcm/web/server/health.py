"""Liveness, readiness and metrics endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from lcm.models import Heartbeat
from lcm.monitoring import metrics
from lcm.monitoring.scrape_access import scrape_refusal
from lcm.web.access import public
from lcm.web.server.database_health import health, probe_database

# Below the promised 3 s. A check may wait longer for a pooled connection.
READY_SECONDS = 2.5
_threads = ThreadPoolExecutor(4, thread_name_prefix="readiness")
# One attempt with a limit of one second, because /readyz must respond within three.
BROKER_LIMITS: dict[str, Any] = {
    "socket_timeout": 1,
    "socket_connect_timeout": 1,
    "retry": Retry(NoBackoff(), 0),
}


@require_safe
@public
def healthz(request: HttpRequest) -> HttpResponse:
    """Liveness: the process responds."""
    return HttpResponse("ok", content_type="text/plain")


@require_safe
@public
def readyz(request: HttpRequest) -> HttpResponse:
    """Readiness: all dependencies are available; otherwise a 503 that names the missing ones."""
    try:
        problems = _threads.submit(find_problems).result(READY_SECONDS)
    except TimeoutError:
        return _not_ready_in_time()
    ready = not any(problems.values())
    parts = {name: problem or "ok" for name, problem in problems.items()}
    return JsonResponse({"ready": ready, "checks": parts}, status=200 if ready else 503)


def find_problems() -> dict[str, str]:
    """Return the problem of each dependency, empty if it responds."""
    try:
        with health.watched():
            problems = {name: check() for name, check in CHECKS.items()}
            unknown = "unknown: the database does not respond"
            problems["beat"] = unknown if problems["database"] else beat_problem()
            return problems
    finally:
        close_old_connections()


def _not_ready_in_time() -> HttpResponse:
    checks = {"web": "the checks timed out: no free database connection, or the host is overloaded"}
    return JsonResponse({"ready": False, "checks": checks}, status=503)


@require_safe
@public
def prometheus(request: HttpRequest) -> HttpResponse:
    """Prometheus metrics of LCM, for requests with METRICS_TOKEN or from localhost."""
    return _metrics_response(request, metrics.render_metrics)


@require_safe
@public
def process_metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus metrics of this process only, with the same access rule."""
    return _metrics_response(request, metrics.render_process_metrics)


def _metrics_response(request: HttpRequest, render: Callable[[], bytes]) -> HttpResponse:
    if refusal := scrape_refusal(request.META):
        status, reason = refusal
        headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
        return HttpResponse(reason, status=status, content_type="text/plain", headers=headers)
    return HttpResponse(render(), content_type=CONTENT_TYPE_LATEST)


def database_problem() -> str:
    problem = asyncio.run(probe_database())
    if not problem:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except DatabaseError as error:
            problem = _first_line(error)
    return f"the database does not respond: {problem}" if problem else ""


def broker_problem() -> str:
    try:
        with Redis.from_url(settings.REDIS_URL, **BROKER_LIMITS) as broker:
            broker.ping()
    except (RedisError, OSError) as error:
        return f"the broker does not respond: {_first_line(error)}"
    return ""


def beat_problem() -> str:
    try:
        beat = Heartbeat.objects.filter(name="beat").first()
    except DatabaseError as error:
        return f"unknown: {_first_line(error)}"
    if beat is None:
        return "beat has not run a task yet"
    age = (timezone.now() - beat.at).total_seconds()
    if age > settings.CONFIG["BEAT_HEARTBEAT_MAX_AGE"]:
        return f"beat's last task ran {age:.0f} s ago"
    return ""


CHECKS: dict[str, Callable[[], str]] = {
    "database": database_problem,
    "broker": broker_problem,
}


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
