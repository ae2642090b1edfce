"""A fake Prometheus with scripted responses that records its queries."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

# Timeout in seconds that is long enough on a busy machine.
ENOUGH = 30.0
K1, K2, K3 = (f"0f0f0f0f-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))


@dataclass(frozen=True)
class ReceivedQuery:
    path: str
    form: dict[str, str]
    headers: dict[str, str]

    @property
    def query(self) -> str:
        return self.form["query"]

    @property
    def kind(self) -> str:
        for kind, function in (("rate", "rate("), ("diff", "increase("), ("busiest", "topk(")):
            if function in self.query:
                return kind
        return "gauge"


@dataclass(frozen=True)
class FakeResponse:
    """A response: body as bytes or JSON, delay before it, and delay between its chunks."""

    body: Any
    status: int = 200
    delay: float = 0.0
    drip: float = 0.0

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def vector(*samples: tuple[dict[str, str], Any], **fields: Any) -> dict[str, Any]:
    result = [{"metric": labels, "value": [time.time(), str(value)]} for labels, value in samples]
    return {"status": "success", "data": {"resultType": "vector", "result": result}, **fields}


def matrix(*lines: tuple[dict[str, str], list[tuple[float, float]]]) -> dict[str, Any]:
    result = [
        {"metric": labels, "values": [[at, str(value)] for at, value in points]} for labels, points in lines
    ]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def error_body(kind: str, error: str) -> dict[str, Any]:
    return {"status": "error", "errorType": kind, "error": error}


def gauge(kernel: str, metric: str, value: float, value_type: str = "current", **labels: str) -> Any:
    return {"kernel_id": kernel, "metric": metric, "value_type": value_type, "stat": "now", **labels}, value


def last_read(kernel: str, moment: float, **labels: str) -> Any:
    return {"kernel_id": kernel, "stat": "seen", **labels}, moment


def increase(kernel: str, metric: str, value: float, **labels: str) -> Any:
    return {"kernel_id": kernel, "metric": metric, **labels}, value


@dataclass
class FakePrometheus:
    """`respond` returns the response to each query; queries may be concurrent."""

    url: str
    respond: Callable[[ReceivedQuery], FakeResponse]
    queries: list[ReceivedQuery] = field(default_factory=list)


def always(response: FakeResponse) -> Callable[[ReceivedQuery], FakeResponse]:
    return lambda _: response


def healthy_response(query: ReceivedQuery) -> FakeResponse:
    """Return responses for one healthy kernel."""
    if query.path.endswith("query_range"):
        start, step = float(query.form["start"]), float(query.form["step"])
        metric = "net_rx" if query.kind == "rate" else "cpu_util"
        points = [(start + step * index, 0.5 + index / 10) for index in range(5)]
        return FakeResponse(matrix(({"kernel_id": K1, "metric": metric}, points)))
    if query.kind == "rate":
        return FakeResponse(vector(increase(K1, "net_rx", 2048.0), increase(K1, "net_tx", 1024.0)))
    if query.kind == "diff":
        return FakeResponse(vector(increase(K1, "disk_read", 6000.0)))
    return FakeResponse(
        vector(
            gauge(K1, "cpu_util", 1.5),
            gauge(K1, "cpu_util", 2.0, "capacity"),
            gauge(K1, "cpu_util", 75.0, "pct"),
            gauge(K1, "cpu_util", 1.9, stat="max"),
            gauge(K1, "cpu_util", 1.2, stat="avg"),
            gauge(K1, "mem", 512.0),
            gauge(K1, "mem", 1024.0, "capacity"),
            last_read(K1, time.time() - 1),
        )
    )


@contextmanager
def run_fake_prometheus(
    respond: Callable[[ReceivedQuery], FakeResponse] = healthy_response, certificate: str = ""
) -> Iterator[FakePrometheus]:
    """Run the fake server; with a certificate it uses TLS."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            query = ReceivedQuery(
                self.path,
                {name: values[0] for name, values in parse_qs(body).items()},
                {name.lower(): value for name, value in self.headers.items()},
            )
            fake.queries.append(query)
            response = fake.respond(query)
            time.sleep(response.delay)
            content = response.content()
            self.send_response(response.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            try:
                for chunk in (
                    [content[at : at + 1] for at in range(len(content))] if response.drip else [content]
                ):
                    self.wfile.write(chunk)
                    time.sleep(response.drip)
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    fake = FakePrometheus(f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}", respond)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
