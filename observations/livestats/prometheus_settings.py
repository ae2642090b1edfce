"""Prometheus connection and query settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import Error, register

LABEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# `rate` and `increase` need samples at both ends of their window, and one may be lost.
LEAST_SCRAPES = 4


@dataclass(frozen=True)
class PrometheusSettings:
    """Durations are in seconds unless named otherwise.

    An empty URL means that Prometheus is not configured.
    """

    url: str = ""
    status_file: str = ""
    token: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    client_certificate: str = ""
    client_key: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 5.0
    scrape_interval: float = 15.0
    window: float = 60.0
    step: float = 15.0
    chunk: int = 500
    cache: float = 5.0

    @classmethod
    def from_settings(cls) -> Self:
        config = settings.CONFIG
        return cls(
            url=config["PROMETHEUS_URL"].rstrip("/"),
            status_file=config["PROMETHEUS_STATUS_FILE"],
            token=config["PROMETHEUS_TOKEN"],
            user=config["PROMETHEUS_USER"],
            password=config["PROMETHEUS_PASSWORD"],
            ca_file=config["PROMETHEUS_CA_FILE"],
            client_certificate=config["PROMETHEUS_CLIENT_CERTIFICATE"],
            client_key=config["PROMETHEUS_CLIENT_KEY"],
            labels=dict(_label(each) for each in config["PROMETHEUS_LABELS"]),
            timeout=config["PROMETHEUS_TIMEOUT"],
            scrape_interval=config["PROMETHEUS_SCRAPE_INTERVAL"],
            window=config["LIVE_STATS_WINDOW"],
            step=config["LIVE_STATS_STEP"],
            chunk=config["LIVE_STATS_CHUNK"],
            cache=config["LIVE_STATS_CACHE_SECONDS"],
        )

    @property
    def is_configured(self) -> bool:
        return bool(self.url)


def problems(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the invalid settings; checked when LCM starts."""
    url = config["PROMETHEUS_URL"]
    if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        yield f"PROMETHEUS_URL must look like http://prometheus:9090; it is “{url}”"
    for text in config["PROMETHEUS_LABELS"]:
        if not LABEL_NAME.fullmatch(_label(text)[0]):
            yield f"PROMETHEUS_LABELS: “{text}” is not a label; use for example cluster=lab"
    if config["PROMETHEUS_TOKEN"] and config["PROMETHEUS_USER"]:
        yield "PROMETHEUS_TOKEN and PROMETHEUS_USER are mutually exclusive; set only one of them"
    if bool(config["PROMETHEUS_CLIENT_CERTIFICATE"]) != bool(config["PROMETHEUS_CLIENT_KEY"]):
        yield "PROMETHEUS_CLIENT_CERTIFICATE and PROMETHEUS_CLIENT_KEY must be set together"
    least = LEAST_SCRAPES * config["PROMETHEUS_SCRAPE_INTERVAL"]
    if config["LIVE_STATS_WINDOW"] < least:
        yield (
            f"LIVE_STATS_WINDOW is {config['LIVE_STATS_WINDOW']:g} s; rates need {LEAST_SCRAPES} scrapes: "
            f"at least {least:g} s with PROMETHEUS_SCRAPE_INTERVAL={config['PROMETHEUS_SCRAPE_INTERVAL']:g}"
        )
    if config["LIVE_STATS_STEP"] < config["PROMETHEUS_SCRAPE_INTERVAL"]:
        yield "LIVE_STATS_STEP must be at least PROMETHEUS_SCRAPE_INTERVAL (no samples between scrapes)"


@register()
def check_prometheus_settings(**kwargs: Any) -> list[Error]:
    return [Error(problem, id="observations.E001") for problem in problems(settings.CONFIG)]


def _label(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value.strip()
