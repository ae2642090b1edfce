"""Controller configuration: a TOML file, overridden by environment variables."""

from __future__ import annotations

import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict, PositiveFloat, PositiveInt, TypeAdapter, ValidationError

from lcm.domain.validation import Problem, problems_of

PREFIX = "LCM_CONTROLLER_"
ANY_HOST = ("", "0.0.0.0", "::")  # noqa: S104 (compared, never bound)


class ConfigError(Exception):
    """The configuration is invalid. The message says what to change."""


@dataclass(frozen=True)
class _Settings:
    """Base class: no other names are allowed."""

    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False
    )


@dataclass(frozen=True)
class Credentials(_Settings):
    """Credentials and trust settings for workers."""

    username: str = "admin"
    password: str = field(default="", repr=False)
    password_file: str = ""
    ca_file: str = ""
    fingerprint: str = ""

    def secret(self) -> str:
        return self.password or (_text_of(self.password_file) if self.password_file else "")


@dataclass(frozen=True)
class Config(_Settings):
    """Controller settings. Durations are in seconds."""

    lcm_url: str = "http://127.0.0.1:8000"
    token: str = field(default="", repr=False)
    token_file: str = ""
    lcm_ca_file: str = ""
    name: str = ""
    data_dir: str = "controller"
    metrics_bind: str = "127.0.0.1:9108"
    metrics_address: str = ""
    log_level: str = "INFO"

    concurrency: PositiveInt = 64
    heartbeat_seconds: PositiveFloat = 10.0
    survey_seconds: PositiveFloat = 60.0
    stats_seconds: PositiveFloat = 10.0
    boot_poll_seconds: PositiveFloat = 2.0
    running_check_seconds: PositiveFloat = 60.0
    resync_seconds: PositiveFloat = 300.0
    watch_seconds: PositiveFloat = 25.0
    start_lead_seconds: PositiveFloat = 600.0
    boot_timeout_seconds: PositiveFloat = 900.0
    import_settle_seconds: PositiveFloat = 15.0
    stop_timeout_seconds: PositiveFloat = 900.0
    worker_lost_seconds: PositiveFloat = 300.0
    orphan_grace_seconds: PositiveFloat = 300.0
    observe_seconds: PositiveFloat = 30.0
    shutdown_grace_seconds: PositiveFloat = 8.0
    spool_entries: PositiveInt = 5_000
    spool_mb: PositiveInt = 256

    workers: Credentials = Credentials()
    # Keyed by slot name or pool name.
    overrides: Mapping[str, Credentials] = field(default_factory=dict)

    def credentials_for(self, slot: str, pool: str) -> Credentials:
        return self.overrides.get(slot) or self.overrides.get(pool) or self.workers

    def metrics_target(self) -> str:
        """Return the host and port where Prometheus scrapes the metrics; empty if metrics are off."""
        if self.metrics_bind == "off":
            return ""
        host, _, port = self.metrics_bind.rpartition(":")
        name = socket.gethostname() if host.strip("[]") in ANY_HOST else host
        return self.metrics_address or f"{name}:{port}"

    def api_token(self) -> str:
        """Return the API token. The file is read on every call, so a rotated token takes effect at once."""
        token = self.token or (_text_of(self.token_file) if self.token_file else "")
        if not token:
            raise ConfigError(f"No token for LCM is configured. Set {PREFIX}TOKEN or {PREFIX}TOKEN_FILE.")
        return token


def read_config(path: str | None, environ: Mapping[str, str]) -> Config:
    """Return the validated configuration from the file and the environment."""
    settings = _from_file(path) if path else {}
    workers = settings.pop("workers", {})
    if not isinstance(workers, dict):
        raise ConfigError("[workers] must be a table.")
    if "overrides" in settings:
        raise ConfigError("Unknown setting overrides.")
    overrides = {name: workers.pop(name) for name in list(workers) if isinstance(workers[name], dict)}
    base = {**workers, **_from_environment(Credentials, environ, "WORKER_")}
    values = {**settings, **_from_environment(Config, environ), "workers": base}
    values["overrides"] = {name: {**base, **credentials} for name, credentials in overrides.items()}
    try:
        config = TypeAdapter(Config).validate_python(values)
    except ValidationError as error:
        raise ConfigError(" ".join(map(_sentence, problems_of(error)))) from error
    config.api_token()
    return config


def _sentence(problem: Problem) -> str:
    path = ".".join(map(str, problem.path))
    if problem.path[0] == "overrides":
        path = path.replace("overrides", "workers", 1)
    if problem.kind == "unknown":
        return f"Unknown setting {path}."
    return f"{path} must be {problem.be}, not {problem.value!r}."


def _from_file(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            values: dict[str, Any] = _without_flags(tomllib.load(file))
            return values
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} could not be read: {error}") from error


def _without_flags(values: object) -> Any:
    """Return true and false as text: pydantic would read them as 1 and 0, and no setting is a flag."""
    if isinstance(values, dict):
        return {name: _without_flags(value) for name, value in values.items()}
    return str(values).lower() if isinstance(values, bool) else values


def _from_environment(kind: type, environ: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    names = {f"{PREFIX}{prefix}{column.name.upper()}": column.name for column in fields(kind)}
    return {field: environ[name] for name, field in names.items() if environ.get(name)}


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise ConfigError(f"{path} could not be read: {error}") from error
