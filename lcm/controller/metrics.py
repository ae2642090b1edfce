"""The controller's own metrics, and what running labs use, on a port of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lcm.cml.client.caller import CallRecord
from lcm.cml.observation.model import NodeObservation

UTILIZATION = "lcm_container_utilization"
BYTES = "lcm_container_bytes"
OBSERVED_AT = "lcm_container_observed_timestamp_seconds"
TOTAL = "total"
MB = 1024 * 1024
BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@dataclass(frozen=True)
class MetricSample:
    """One figure of a kernel.

    `value_type` is current, capacity or pct of cpu_util, mem and disk; or total, of what only grows:
    disk_read, disk_write, net_rx and net_tx.
    """

    kernel_id: str
    metric: str
    value_type: str
    value: float


@dataclass(frozen=True)
class SessionSamples:
    """What a session's nodes showed at a moment, in seconds of the clock."""

    at: float
    samples: tuple[MetricSample, ...]


def samples_of(kernel_id: str, node: NodeObservation) -> list[MetricSample]:
    """Cores, bytes and percent of a node; what is not known has no sample."""
    figures = {
        ("cpu_util", "current"): node.used_cpu_cores,
        ("cpu_util", "capacity"): node.cpu_cores,
        ("cpu_util", "pct"): node.cpu_usage_percent,
        ("mem", "current"): _bytes(node.used_memory_mb),
        ("mem", "capacity"): _bytes(node.ram_mb),
        ("mem", "pct"): node.memory_usage_percent,
        ("disk", "current"): _bytes(node.used_storage_mb),
        ("disk", "capacity"): _bytes(node.storage_mb),
    }
    return [
        MetricSample(kernel_id, metric, value_type, float(value))
        for (metric, value_type), value in figures.items()
        if value is not None
    ]


def _bytes(megabytes: int | None) -> int | None:
    return None if megabytes is None else megabytes * MB


class Utilization(Collector):
    """The newest figures of each running session; a session that is removed leaves no series."""

    def __init__(self) -> None:
        self._readings: dict[str, SessionSamples] = {}

    def put(self, session_id: str, samples: Iterable[MetricSample], at: float) -> None:
        self._readings[session_id] = SessionSamples(at, tuple(samples))

    def remove(self, session_id: str) -> None:
        self._readings.pop(session_id, None)

    def keep_only(self, session_ids: Iterable[str]) -> None:
        for gone in set(self._readings) - set(session_ids):
            self.remove(gone)

    def collect(self) -> Iterator[Metric]:
        labels = ["kernel_id", "session_id", "metric"]
        used = GaugeMetricFamily(
            UTILIZATION, "What the nodes of running labs use and have.", labels=[*labels, "value_type"]
        )
        moved = CounterMetricFamily(
            BYTES,
            "Bytes that nodes of running labs have read, written, received, sent.",
            labels=labels,
        )
        seen = GaugeMetricFamily(OBSERVED_AT, "When a node's figures were read from CML.", labels=labels[:2])
        for session_id, reading in list(self._readings.items()):
            for each in reading.samples:
                names = [each.kernel_id, session_id, each.metric]
                if each.value_type == TOTAL:
                    moved.add_metric(names, each.value)
                else:
                    used.add_metric([*names, each.value_type], each.value)
            for kernel_id in dict.fromkeys(each.kernel_id for each in reading.samples):
                seen.add_metric([kernel_id, session_id], reading.at)
        yield from (used, moved, seen)


class Metrics:
    """All in a registry of their own, so that two controllers fit into one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.utilization = Utilization()
        self.registry.register(self.utilization)
        self.reconciles = Histogram(
            "lcm_controller_reconcile_seconds",
            "Time to look at a session, by its status and how it went.",
            ["status", "result"],
            registry=self.registry,
            buckets=BUCKETS,
        )
        self.calls = Histogram(
            "lcm_controller_cml_call_seconds",
            "Calls to CML, by call and result.",
            ["call", "result"],
            registry=self.registry,
            buckets=BUCKETS,
        )
        self.observations = self._counter("lcm_controller_observations", "Labs observed.", ["result"])
        self.heartbeats = self._counter("lcm_controller_heartbeats", "Heartbeats sent.", ["result"])
        self.orphans = self._counter("lcm_controller_orphans_removed", "Labs removed that had no session.")
        self.spooled = self._gauge("lcm_controller_spool_depth", "Posts that LCM has not taken yet.")
        self.sessions = self._gauge("lcm_controller_sessions", "Sessions on our slots.")
        self.clock_skew = self._gauge(
            "lcm_controller_clock_skew_seconds", "How far this machine's clock is ahead of LCM's."
        )
        self.clock_steady = self._gauge(
            "lcm_controller_clock_steady", "1: LCM's time is known; 0: no session is ended until it is."
        )
        self.held = self._gauge("lcm_controller_pools_held", "Pools that this controller serves.")

    def note_call(self, record: CallRecord) -> None:
        self.calls.labels(call=record.call, result=record.result).observe(record.seconds)

    def serve(self, bind: str) -> None:
        """Answer Prometheus; port 0 would not be found by anybody."""
        host, _, port = bind.rpartition(":")
        start_http_server(int(port), host.strip("[]") or "127.0.0.1", registry=self.registry)

    def _counter(self, name: str, text: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(name, text, list(labels), registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry)
