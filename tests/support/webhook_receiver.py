"""An HTTP server that records requests and answers as planned."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lcm.events.webhook_client import EndpointClient, Network, SendResult


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
    # Closes the connection after the response, without notice in the response.
    close: bool = False


@dataclass(frozen=True)
class Received:
    path: str
    headers: Mapping[str, str]
    body: str
    # Address of the client; the same for all requests of a connection.
    client: tuple[str, int]


class Receiver:
    """`plan` gives the next responses; after them every request gets `otherwise`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Received] = []
        self.plan: list[Reply] = []
        self.otherwise = Reply()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep the output of the tests clean: clients that close a connection are expected."""


@contextmanager
def webhook_receiver(certificate: str = "") -> Iterator[Receiver]:
    """Start a receiver; with a file of key and certificate it speaks https."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            with lock:
                receiver.requests.append(Received(self.path, dict(self.headers), body, self.client_address))
                reply = receiver.plan.pop(0) if receiver.plan else receiver.otherwise
            time.sleep(reply.delay)
            self.close_connection = reply.cut or reply.close
            if reply.cut:
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.status != 204:
                self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self._send_body(reply)

        def _send_body(self, reply: Reply) -> None:
            for byte in reply.body if reply.drip else ():
                self.wfile.write(bytes([byte]))
                time.sleep(reply.drip)
            if not reply.drip:
                self.wfile.write(reply.body)

        def log_message(self, *args: object) -> None:
            """Keep the output of the tests clean."""

    server = _Server(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    scheme = "https" if certificate else "http"
    receiver = Receiver(f"{scheme}://127.0.0.1:{server.server_address[1]}/hook")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def send_request(
    url: str, *, body: bytes, headers: Mapping[str, str], allowed: Iterable[Network], ca_file: str = ""
) -> SendResult:
    """Send one request on a connection of its own."""

    async def send() -> SendResult:
        client = EndpointClient(url, allowed=allowed, ca_file=ca_file)
        result = await client.post(body, headers)
        await client.close()
        return result

    return asyncio.run(send())
