"""Log lines for people or machines, each with the request or task it belongs to."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

request_id: ContextVar[str] = ContextVar("request_id", default="")
task_id: ContextVar[str] = ContextVar("task_id", default="")

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "context", "data"}


def trace_id() -> str:
    """The id of the request or task that is being worked on, or nothing."""
    return request_id.get() or task_id.get()


class JsonFormatter(logging.Formatter):
    """One JSON object a line; fields given as `extra` stand beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
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


def _one_line(value: Any) -> str:
    """Whatever a caller sent, it makes no new line in the log."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(value))


class ReadinessResponseFilter(logging.Filter):
    """`/readyz` answering 503 is an answer, not an error of ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.name == "django.request" and getattr(record, "status_code", 0) == 503)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD and key != "request"}


def logging_config(*, style: str, level: str) -> dict[str, Any]:
    """Django's LOGGING: everything to standard error in one format."""
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
            # The request log has a line for each answer, these would be a second one.
            "django.request": {"handlers": [], "propagate": True, "level": "ERROR"},
            "httpx": {"level": "WARNING"},
            # A line for each heartbeat would drown the rest; failures are warnings and errors.
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
        },
    }
