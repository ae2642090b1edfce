"""Prometheus metrics of the controller and of running labs, served on a separate port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lcm.cml.client.caller import CallRecord
from lcm.cml.observation.model import NodeObservation

UTILIZATION = "lcm_kernel_utilization"
BYTES = "lcm_kernel_bytes"
OBSERVED_AT = "lcm_kernel_observed_timestamp_seconds"
TOTAL = "total"
MB = 1024 * 1024
BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@dataclass(frozen=True)
class MetricSample:
    """One measured value of a kernel.

    `value_type` is current, capacity or pct for cpu_util, mem and disk, and total for the counters disk_read,
    disk_write, net_rx and net_tx.
    """

    kernel_id: str
    metric: str
    value_type: str
    value: float


def samples_of(kernel_id: str, node: NodeObservation) -> list[MetricSample]:
    """Return CPU, memory and disk samples of a node. Unknown values have no sample."""
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
    """Collector of the latest samples of each running session. A removed session leaves no series."""

    def __init__(self) -> None:
        # By session: the Unix time of the reading and the samples of its nodes.
        self._readings: dict[str, tuple[float, list[MetricSample]]] = {}

    def put(self, session_id: str, samples: Iterable[MetricSample], at: float) -> None:
        self._readings[session_id] = at, list(samples)

    def remove(self, session_id: str) -> None:
        self._readings.pop(session_id, None)

    def keep_only(self, session_ids: Iterable[str]) -> None:
        for session_id in set(self._readings) - set(session_ids):
            self.remove(session_id)

    def collect(self) -> Iterator[Metric]:
        labels = ["kernel_id", "session_id", "metric"]
        used = GaugeMetricFamily(
            UTILIZATION, "Usage and capacity of nodes in running labs.", labels=[*labels, "value_type"]
        )
        moved = CounterMetricFamily(
            BYTES,
            "Bytes read, written, received and sent by nodes of running labs.",
            labels=labels,
        )
        observed = GaugeMetricFamily(
            OBSERVED_AT, "Time at which a node's usage was read from CML.", labels=labels[:2]
        )
        for session_id, (at, samples) in list(self._readings.items()):
            for sample in samples:
                names = [sample.kernel_id, session_id, sample.metric]
                if sample.value_type == TOTAL:
                    moved.add_metric(names, sample.value)
                else:
                    used.add_metric([*names, sample.value_type], sample.value)
            for kernel_id in dict.fromkeys(sample.kernel_id for sample in samples):
                observed.add_metric([kernel_id, session_id], at)
        yield from (used, moved, observed)


class Metrics:
    """Metrics in a registry of their own, so that two controllers fit into one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.utilization = Utilization()
        self.registry.register(self.utilization)
        self.reconciles = Histogram(
            "lcm_controller_reconcile_duration_seconds",
            "Reconcile duration of a session by status and result.",
            ["status", "result"],
            registry=self.registry,
            buckets=BUCKETS,
        )
        self.calls = Histogram(
            "lcm_controller_cml_call_duration_seconds",
            "Calls to CML, by call and result.",
            ["call", "result"],
            registry=self.registry,
            buckets=BUCKETS,
        )
        self.observations = self._counter("lcm_controller_observations", "Labs observed.", ["result"])
        self.heartbeats = self._counter("lcm_controller_heartbeats", "Heartbeats sent.", ["result"])
        self.orphans = self._counter("lcm_controller_orphans_removed", "Labs removed that had no session.")
        self.spooled = self._gauge("lcm_controller_spool_depth", "Posts that LCM has not accepted yet.")
        self.sessions = self._gauge("lcm_controller_sessions", "Sessions on this controller's slots.")
        self.clock_skew = self._gauge(
            "lcm_controller_clock_skew_seconds", "Seconds the local clock is ahead of LCM's."
        )
        self.clock_steady = self._gauge(
            "lcm_controller_clock_steady", "1 if LCM's time is known, else 0; no session is ended at 0."
        )
        self.held = self._gauge("lcm_controller_pools_held", "Pools whose lease this controller holds.")

    def record_call(self, record: CallRecord) -> None:
        self.calls.labels(call=record.call, result=record.result).observe(record.seconds)

    def serve(self, bind: str) -> None:
        """Serve the metrics to Prometheus at `bind`."""
        host, _, port = bind.rpartition(":")
        start_http_server(int(port), host.strip("[]") or "127.0.0.1", registry=self.registry)

    def _counter(self, name: str, text: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(name, text, list(labels), registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry)
