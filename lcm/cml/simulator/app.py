"""The ASGI application: controllers by path prefix, and the administration API.

`/api/v0/…` is the controller without a name, `/NAME/api/v0/…` a named one, `/simulator/…` the administration.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from lcm.cml.simulator.admin_api import AdminApi
from lcm.cml.simulator.calls import respond
from lcm.cml.simulator.controller import SimulatedController
from lcm.cml.simulator.faults import REPLACING_KINDS, Fault, FaultKind, apply_fault
from lcm.cml.simulator.http_messages import Reply, Request
from lcm.cml.simulator.options import ControllerOptions
from lcm.cml.simulator.state_file import StateFile

API = "/api/v0/"
MAX_BODY = 8 * 1024 * 1024

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class ConnectionDropped(Exception):
    """Raised into the server, which then closes the connection."""


class SimulatorApp:
    """Controllers by name. `add` and `remove` correspond to launching and terminating a worker.

    With a keeper, the controllers of an earlier run are restored.
    """

    def __init__(self, *controllers: SimulatedController, keeper: StateFile | None = None) -> None:
        restored = keeper.load() if keeper else []
        self.controllers = {controller.name: controller for controller in [*controllers, *restored]}
        self.administration = AdminApi(self)
        self._keeper = keeper

    def add(self, name: str, options: ControllerOptions | None = None) -> SimulatedController:
        """Return the controller with this name, creating it if needed."""
        if name not in self.controllers:
            clock = self._keeper.clock if self._keeper else time.monotonic
            self.controllers[name] = SimulatedController(name, options, clock=clock)
        return self.controllers[name]

    def remove(self, name: str) -> bool:
        """Remove a controller with all its labs. Return whether it existed."""
        return self.controllers.pop(name, None) is not None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        prefix, found, rest = path.partition(API)
        controller = self.controllers.get(prefix.strip("/")) if found else None
        body = await _body(receive)
        if len(body) > MAX_BODY:
            await _send(send, Reply.error(413, f"Request Entity Too Large: more than {MAX_BODY} bytes."))
        elif controller is not None:
            await _serve(controller, _request(scope, f"/{rest}", body), send)
        elif path.startswith("/simulator/"):
            await _send(send, self.administration.answer(_request(scope, path, body)))
        else:
            await _send(send, Reply.error(404, f"Not Found: no controller at {path}"))
        if self._keeper and scope["method"] != "GET":
            self._keeper.save(self.controllers.values())


async def _serve(controller: SimulatedController, request: Request, send: Send) -> None:
    """Respond as the controller would, with active faults applied."""
    faults = controller.faults_for(request)
    slow = [fault for fault in faults if fault.kind == FaultKind.LATENCY]
    await _pause(controller.options.latency_seconds + sum(f.seconds for f in slow if not f.executed))
    fault = next((fault for fault in faults if fault.kind != FaultKind.LATENCY), None)
    reply = _reply(controller, request, fault)
    controller.record(request, reply)
    await _pause(sum(f.seconds for f in slow if f.executed))
    await _send(send, reply, broken=fault is not None and fault.kind == FaultKind.DROP)


async def _pause(seconds: float) -> None:
    if seconds:
        await asyncio.sleep(seconds)


def _reply(controller: SimulatedController, request: Request, fault: Fault | None) -> Reply:
    if fault is None:
        return respond(controller, request)
    if fault.kind == FaultKind.UNAUTHORIZED:
        controller.users.forget(request.bearer)
        return respond(controller, request)
    if fault.kind in REPLACING_KINDS:
        lost = respond(controller, request) if fault.executed else None
        return lost if lost and fault.kind == FaultKind.DROP else Reply.error(fault.status, fault.description)
    return apply_fault(respond(controller, request), fault)


async def _send(send: Send, reply: Reply, *, broken: bool = False) -> None:
    length = len(reply.body) + (1 if broken else 0)
    headers = [(b"server", b"simulator")]
    if reply.status != 204:
        headers += [
            (b"content-type", reply.content_type.encode()),
            (b"content-length", str(length).encode()),
        ]
    await send({"type": "http.response.start", "status": 200 if broken else reply.status, "headers": headers})
    if broken:
        half = reply.body[: len(reply.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        raise ConnectionDropped
    await send({"type": "http.response.body", "body": reply.body})


async def _body(receive: Receive) -> bytes:
    """Return the body, reading only slightly beyond the limit."""
    parts: list[bytes] = []
    more = True
    while more and sum(map(len, parts)) <= MAX_BODY:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message["type"] == "http.request" and message.get("more_body", False)
    return b"".join(parts)


def _request(scope: Message, path: str, body: bytes) -> Request:
    return Request(
        method=scope["method"],
        path=path,
        query=dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)),
        headers={key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]},
        body=body,
    )
