"""Controller configuration: a TOML file, overridden by environment variables."""

from __future__ import annotations

import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

PREFIX = "LCM_CONTROLLER_"
ANY_HOST = ("", "0.0.0.0", "::")  # noqa: S104 (compared, never bound)


class ConfigError(Exception):
    """The configuration is invalid. The message says what to change."""


@dataclass(frozen=True)
class Credentials:
    """Credentials and trust settings for workers."""

    username: str = "admin"
    password: str = field(default="", repr=False)
    password_file: str = ""
    ca_file: str = ""
    fingerprint: str = ""

    def secret(self) -> str:
        return self.password or (_text_of(self.password_file) if self.password_file else "")


@dataclass(frozen=True)
class Config:
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

    concurrency: int = 64
    heartbeat_seconds: float = 10.0
    survey_seconds: float = 60.0
    stats_seconds: float = 10.0
    boot_poll_seconds: float = 2.0
    running_check_seconds: float = 60.0
    resync_seconds: float = 300.0
    watch_seconds: float = 25.0
    start_lead_seconds: float = 600.0
    boot_timeout_seconds: float = 900.0
    import_settle_seconds: float = 15.0
    stop_timeout_seconds: float = 900.0
    worker_lost_seconds: float = 300.0
    orphan_grace_seconds: float = 300.0
    observe_seconds: float = 30.0
    shutdown_grace_seconds: float = 8.0
    spool_entries: int = 5_000
    spool_mb: int = 256

    workers: Credentials = Credentials()
    # Keyed by slot name or pool name.
    overrides: Mapping[str, Credentials] = field(default_factory=dict)

    def credentials_for(self, slot: str, pool: str) -> Credentials:
        return self.overrides.get(slot) or self.overrides.get(pool) or self.workers

    def scraped_at(self) -> str:
        """Return the host and port where Prometheus scrapes the metrics; empty if metrics are off."""
        if self.metrics_bind == "off":
            return ""
        host, _, port = self.metrics_bind.rpartition(":")
        name = socket.gethostname() if host.strip("[]") in ANY_HOST else host
        return self.metrics_address or f"{name}:{port}"

    def key(self) -> str:
        """Return the API token. The file is read on every call, so a rotated token takes effect at once."""
        found = self.token or (_text_of(self.token_file) if self.token_file else "")
        if not found:
            raise ConfigError(f"No token for LCM is configured. Set {PREFIX}TOKEN or {PREFIX}TOKEN_FILE.")
        return found


def read_config(path: str | None, environ: Mapping[str, str]) -> Config:
    """Return the validated configuration from the file and the environment."""
    given = _from_file(path) if path else {}
    workers = given.pop("workers", {})
    if not isinstance(workers, dict):
        raise ConfigError("[workers] must be a table.")
    overrides = {name: workers.pop(name) for name in list(workers) if isinstance(workers[name], dict)}
    base = {**workers, **_from_environment(Credentials, environ, "WORKER_")}
    values = {**given, **_from_environment(Config, environ)}
    config = Config(
        **_checked(Config, values, ""),
        workers=Credentials(**_checked(Credentials, base, "workers.")),
        overrides={
            name: Credentials(**_checked(Credentials, {**base, **each}, f"workers.{name}."))
            for name, each in overrides.items()
        },
    )
    config.key()
    return config


def _from_file(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} could not be read: {error}") from error


def _from_environment(kind: type, environ: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    names = {f"{PREFIX}{prefix}{each.name.upper()}": each.name for each in fields(kind)}
    return {field: environ[name] for name, field in names.items() if environ.get(name)}


def _checked(kind: type, values: Mapping[str, Any], place: str) -> dict[str, Any]:
    plain = {each.name: each.type for each in fields(kind) if each.type in ("str", "int", "float")}
    unknown = sorted(set(values) - set(plain))
    if unknown:
        raise ConfigError(f"Unknown setting {place}{unknown[0]}.")
    return {name: _value(f"{place}{name}", plain[name], value) for name, value in values.items()}


def _value(name: str, kind: str, value: Any) -> Any:
    try:
        if isinstance(value, bool):
            raise ValueError
        read = {"str": str, "int": int, "float": float}[kind](value)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{name} must be {'text' if kind == 'str' else 'a number'}, not {value!r}."
        ) from error
    if kind != "str" and not 0 < read < 10**9:
        raise ConfigError(f"{name} must be greater than 0, not {value!r}.")
    return read


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise ConfigError(f"{path} could not be read: {error}") from error
