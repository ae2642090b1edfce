"""Timing and result tables."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Durations of repeated calls in seconds."""

    seconds: list[float]

    def percentile(self, share: float) -> float:
        """Return a percentile (nearest rank) in milliseconds."""
        ordered = sorted(self.seconds)
        return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] * 1000

    @property
    def p50(self) -> float:
        return self.percentile(0.5)

    @property
    def p95(self) -> float:
        return self.percentile(0.95)


def measure(call: Callable[[], object], *, times: int, warm_up: int = 3) -> Timing:
    for _ in range(warm_up):
        call()
    seconds = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begun)
    return Timing(seconds)


def measure_page(path: str, *, times: int) -> tuple[int, Timing]:
    """Return the queries of one response to an administrator and the timing of many, after a warm-up."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from lcm.models import User
    from lcm.web.server.warm_up import warm_up

    warm_up()
    client = Client()
    client.force_login(User.objects.get(username="admin"))

    def get() -> None:
        response = client.get(path)
        assert response.status_code == 200, (path, response.status_code)

    with CaptureQueriesContext(connection) as captured:
        get()
    return len(captured), measure(get, times=times)


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table for docs/performance.md."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(heads) + " |")
    print("|" + "|".join("---" for _ in heads) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def start_django() -> None:
    """Set up Django and migrate the database of the environment.

    Django's test environment is not used: it copies the context of every rendered template.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcm.settings")
    import django
    from django.conf import settings
    from django.core.management import call_command

    django.setup()
    settings.ALLOWED_HOSTS.append("testserver")
    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
