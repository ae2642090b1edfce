"""PromQL builders; every label value is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from observations.livestats.catalogue import BYTES, OBSERVED_AT, UTILIZATION, MetricKind, names

# Labels kept from each series; the others would only make the response longer.
KEPT = "kernel_id, metric, value_type, instance"
NOW, MAX, AVG, SEEN = "now", "max", "avg", "seen"
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
_SPECIAL = frozenset("\\.+*?()|[]{}^$")


def quoted(value: str) -> str:
    """Return a PromQL string literal for this text."""
    return '"' + "".join(_ESCAPED.get(letter) or _written(letter) for letter in value) + '"'


def one_of(values: Iterable[str]) -> str:
    """Return a regular expression that matches exactly these texts."""
    return "|".join("".join(f"\\{each}" if each in _SPECIAL else each for each in value) for value in values)


def duration(seconds: float) -> str:
    """Return a PromQL duration in whole milliseconds."""
    return f"{max(round(seconds * 1000), 1)}ms"


class Queries:
    """Queries for a set of kernels; extra labels go into every selector, the window into every range."""

    def __init__(self, *, window: float, labels: Mapping[str, str] | None = None) -> None:
        self._window = duration(window)
        self._labels = dict(labels or {})

    def gauges(self, kernel_ids: Iterable[str]) -> str:
        """Return one query for the current value, maximum and mean over the window, and the time of reading.

        The newest value within the window is used, so that a kernel that has just stopped is stale and not
        absent.
        """
        ids = list(kernel_ids)
        gauges = self._selector(UTILIZATION, ids, names(MetricKind.GAUGE))
        current = self._selector(UTILIZATION, ids, names(MetricKind.GAUGE), value_type="current")
        observed_at = self._selector(OBSERVED_AT, ids)
        return " or ".join(
            (
                _marked(NOW, f"last_over_time({gauges}[{self._window}])"),
                _marked(MAX, f"max_over_time({current}[{self._window}])"),
                _marked(AVG, f"avg_over_time({current}[{self._window}])"),
                _marked(SEEN, f"last_over_time({observed_at}[{self._window}])"),
            )
        )

    def diffs(self, kernel_ids: Iterable[str]) -> str:
        """Return the query for the growth of counters over the window."""
        return self._grown("increase", kernel_ids, names(MetricKind.DIFF), self._window)

    def rates(self, kernel_ids: Iterable[str], *, over: float | None = None) -> str:
        """Return the query for the rate of counters per second; `over` replaces the window."""
        window = self._window if over is None else duration(over)
        return self._grown("rate", kernel_ids, names(MetricKind.RATE), window)

    def gauges_over_time(self, kernel_ids: Iterable[str]) -> str:
        """Return the range query for current values."""
        selected = self._selector(UTILIZATION, kernel_ids, names(MetricKind.GAUGE), value_type="current")
        return f"max by ({KEPT}) ({selected})"

    def busiest(self, metric: str, count: int) -> str:
        """Return the query for the sessions that use most of a metric."""
        labels = {"metric": metric, "value_type": "current", **self._labels}
        selected = UTILIZATION + "{" + _matchers(labels) + "}"
        each = f"max by (session_id, kernel_id) ({selected})"
        return f"topk({int(count)}, sum by (session_id) ({each}))"

    def _grown(self, function: str, kernel_ids: Iterable[str], metrics: list[str], window: str) -> str:
        return f"max by ({KEPT}) ({function}({self._selector(BYTES, kernel_ids, metrics)}[{window}]))"

    def _selector(
        self, name: str, kernel_ids: Iterable[str], metrics: Iterable[str] | None = None, **equal: str
    ) -> str:
        parts = [f"kernel_id=~{quoted(one_of(kernel_ids))}"]
        if metrics is not None:
            parts.append(f"metric=~{quoted(one_of(metrics))}")
        if labels := _matchers({**equal, **self._labels}):
            parts.append(labels)
        return name + "{" + ",".join(parts) + "}"


def _matchers(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={quoted(value)}" for name, value in labels.items())


def _marked(mark: str, vector: str) -> str:
    """Return the vector with the kept labels and a label that marks the kind of value."""
    return f'label_replace(max by ({KEPT}) ({vector}), "stat", {quoted(mark)}, "", "")'


def _written(letter: str) -> str:
    """Escape a control character, which PromQL cannot contain literally."""
    if letter.isprintable() or letter == " ":
        return letter
    number = ord(letter)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
