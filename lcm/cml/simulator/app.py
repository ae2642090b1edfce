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
from lcm.cml.simulator.http_messages import Reply, Request
from lcm.cml.simulator.options import ControllerOptions
from lcm.cml.simulator.state_file import StateFile

API = "/api/v0/"
MAX_BODY = 8 * 1024 * 1024

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class SimulatorApp:
    """Controllers by name. `add` and `remove` correspond to launching and terminating a worker.

    With a state file, the controllers of an earlier run are restored.
    """

    controller_class = SimulatedController
    administration_class = AdminApi

    def __init__(self, *controllers: SimulatedController, state_file: StateFile | None = None) -> None:
        restored = state_file.load() if state_file else []
        self.controllers = {controller.name: controller for controller in [*controllers, *restored]}
        self.administration = self.administration_class(self)
        self._state_file = state_file

    def add(self, name: str, options: ControllerOptions | None = None) -> SimulatedController:
        """Return the controller with this name, creating it if needed."""
        if name not in self.controllers:
            clock = self._state_file.clock if self._state_file else time.monotonic
            self.controllers[name] = self.controller_class(name, options, clock=clock)
        return self.controllers[name]

    def remove(self, name: str) -> bool:
        """Remove a controller with all its labs. Return whether it existed."""
        return self.controllers.pop(name, None) is not None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        prefix, separator, api_path = path.partition(API)
        controller = self.controllers.get(prefix.strip("/")) if separator else None
        body = await _body(receive)
        if len(body) > MAX_BODY:
            await send_reply(send, Reply.error(413, f"Request Entity Too Large: more than {MAX_BODY} bytes."))
        elif controller is not None:
            await self.serve(controller, _request(scope, f"/{api_path}", body), send)
        elif path.startswith("/simulator/"):
            await send_reply(send, self.administration.respond(_request(scope, path, body)))
        else:
            await send_reply(send, Reply.error(404, f"Not Found: no controller at {path}"))
        if self._state_file and scope["method"] != "GET":
            self._state_file.save(self.controllers.values())

    async def serve(self, controller: Any, request: Request, send: Send) -> None:
        """Respond as the controller would."""
        await pause(controller.options.latency_seconds)
        await send_reply(send, respond(controller, request))


async def pause(seconds: float) -> None:
    if seconds:
        await asyncio.sleep(seconds)


async def send_reply(send: Send, reply: Reply) -> None:
    headers = [(b"server", b"simulator")]
    if reply.status != 204:
        headers += [
            (b"content-type", reply.content_type.encode()),
            (b"content-length", str(len(reply.body)).encode()),
        ]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
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
