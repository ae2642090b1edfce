"""An HTTP server that records requests and answers as planned."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Reply:
    """A response, or a fault: `delay` before the response, `cut` instead of it."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay: float = 0
    cut: bool = False
    # Sends one byte of the body after each pause.
    drip: float = 0


@dataclass(frozen=True)
class Received:
    path: str
    headers: Mapping[str, str]
    body: str


class Receiver:
    """`plan` gives the next responses; after them every request gets 204."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Received] = []
        self.plan: list[Reply] = []


@contextmanager
def webhook_receiver() -> Iterator[Receiver]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            with lock:
                receiver.requests.append(Received(self.path, dict(self.headers), body))
                reply = receiver.plan.pop(0) if receiver.plan else Reply()
            time.sleep(reply.delay)
            self.close_connection = True
            if reply.cut:
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self._send_body(reply)

        def _send_body(self, reply: Reply) -> None:
            try:
                for byte in reply.body if reply.drip else ():
                    self.wfile.write(bytes([byte]))
                    time.sleep(reply.drip)
                if not reply.drip:
                    self.wfile.write(reply.body)
            except OSError:
                pass

        def log_message(self, *args: object) -> None:
            """Keep the output of the tests clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}/hook")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
