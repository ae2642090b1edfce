"""Parsing of Prometheus responses; unusable samples are dropped and counted, never guessed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID


class PrometheusError(Exception):
    """A query failed; the message is for users."""


class SeriesSample(NamedTuple):
    """A value of a series at a time (in seconds), with its labels."""

    labels: Mapping[str, str]
    at: float
    value: float


@dataclass(frozen=True)
class RangeSeries:
    """A series over time: times in seconds, and values."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class QueryResult:
    """Samples or series of a query, with warnings and the number of dropped samples."""

    samples: tuple[SeriesSample, ...] = ()
    lines: tuple[RangeSeries, ...] = ()
    dropped: int = 0
    warnings: tuple[str, ...] = field(default=())


def parse_response(body: Any) -> QueryResult:
    """Parse the body of a successful query; raise PrometheusError if its format is unknown."""
    data = body.get("data") if isinstance(body, dict) and body.get("status") == "success" else None
    if not isinstance(data, dict) or not isinstance(data.get("result"), list):
        raise PrometheusError("the response is not a query result")
    warnings = tuple(str(each) for each in body.get("warnings") or ())
    kind, result = data.get("resultType"), data["result"]
    if kind == "vector":
        samples = [_sample(each) for each in result]
        kept = tuple(each for each in samples if each is not None)
        return QueryResult(samples=kept, dropped=len(samples) - len(kept), warnings=warnings)
    if kind == "matrix":
        lines = [_line(each) for each in result]
        found = tuple(each for each in lines if each is not None and each.points)
        return QueryResult(lines=found, dropped=len(lines) - len(found), warnings=warnings)
    # A scalar or a string belongs to no kernel.
    return QueryResult(dropped=1, warnings=warnings)


def error_message(body: object) -> str:
    """Return Prometheus' message in the body of an error; empty if it has none."""
    if not isinstance(body, dict) or body.get("status") != "error":
        return ""
    parts = [str(body[key]) for key in ("errorType", "error") if body.get(key)]
    return ": ".join(parts)[:300]


def kernel_of(labels: Mapping[str, str]) -> str | None:
    """Return the canonical kernel ID of a series; None if it has none."""
    return _usual_form(labels.get("kernel_id", ""))


# A kernel has about twenty series.
@lru_cache(maxsize=20_000)
def _usual_form(text: str) -> str | None:
    try:
        return str(UUID(text))
    except ValueError:
        return None


def _sample(entry: Any) -> SeriesSample | None:
    try:
        at, value = _point(entry["value"])
        return SeriesSample(_labels(entry), at, value)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _line(entry: Any) -> RangeSeries | None:
    try:
        return RangeSeries(_labels(entry), tuple(_points(entry["values"])))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _points(values: Iterable[Any]) -> Iterable[tuple[float, float]]:
    for each in values:
        try:
            yield _point(each)
        except (TypeError, ValueError):
            continue


def _point(pair: Any) -> tuple[float, float]:
    at, value = float(pair[0]), float(pair[1])
    if not (math.isfinite(at) and math.isfinite(value)):
        raise ValueError("not a finite number")
    return at, value


def _labels(entry: Any) -> dict[str, str]:
    labels: dict[str, str] = entry["metric"]
    if not set(map(type, labels.values())) <= {str}:
        raise ValueError("labels are not texts")
    return labels
