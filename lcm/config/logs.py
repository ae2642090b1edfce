"""Log formats for people and machines. Each line carries the id of its request or task."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

request_id: ContextVar[str] = ContextVar("request_id", default="")
task_id: ContextVar[str] = ContextVar("task_id", default="")

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "context", "data"}


def trace_id() -> str:
    """Return the id of the current request or task, or an empty text."""
    return request_id.get() or task_id.get()


class JsonFormatter(logging.Formatter):
    """Format each record as one line of JSON; `extra` fields are keys of the object."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id.get():
            entry["request_id"] = request_id.get()
        if task_id.get():
            entry["task_id"] = task_id.get()
        entry |= _fields(record)
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


class ConsoleFormatter(logging.Formatter):
    """`12:00:01 INFO lcm.requests [3f2a…] request method=GET …`"""

    def format(self, record: logging.LogRecord) -> str:
        trace = f" [{trace_id()[:8]}]" if trace_id() else ""
        fields = "".join(f" {key}={_one_line(value)}" for key, value in _fields(record).items())
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        line = f"{at} {record.levelname} {record.name}{trace} {record.getMessage()}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _one_line(value: object) -> str:
    """Escape control characters, so that a value cannot inject a log line."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(value))


class ReadinessResponseFilter(logging.Filter):
    """Drop Django's error records for status 503: LCM is not ready, but did not fail."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.name == "django.request" and getattr(record, "status_code", 0) == 503)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD and key != "request"}


def logging_config(*, style: str, level: str) -> dict[str, object]:
    """Return Django's LOGGING setting: all records to standard error in one format."""
    formatter = JsonFormatter if style == "json" else ConsoleFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lcm": {"()": formatter}},
        "filters": {"not_ready": {"()": ReadinessResponseFilter}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "lcm", "filters": ["not_ready"]}
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "propagate": True, "level": "INFO"},
            "django.server": {"handlers": [], "propagate": True},
            # The request log has a line for each response already.
            "django.request": {"handlers": [], "propagate": True, "level": "ERROR"},
            "httpx": {"level": "WARNING"},
            # Info lines of every heartbeat would hide the rest; failures are warnings and errors.
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
        },
    }
