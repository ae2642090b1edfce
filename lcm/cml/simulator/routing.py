"""Routing of requests to handlers, with authentication."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lcm.cml.simulator.controller import SimulatedController
from lcm.cml.simulator.http_messages import ApiError, Reply, Request
from lcm.cml.simulator.labs import SimLab, SimNode
from lcm.cml.simulator.options import ControllerOptions
from lcm.cml.simulator.users import SimulatedUser


@dataclass(frozen=True)
class Context:
    """A call: the controller, the request, the user, and the ids in its path."""

    controller: SimulatedController
    request: Request
    user: SimulatedUser | None
    ids: dict[str, str]
    now: float

    @property
    def options(self) -> ControllerOptions:
        return self.controller.options

    @property
    def caller(self) -> SimulatedUser:
        if self.user is None:
            raise ApiError(401, "Not authenticated: 401 Unauthorized: No authorization token provided.")
        return self.user

    @property
    def lab(self) -> SimLab:
        return self.controller.lab(self.ids["lab"], self.caller)

    @property
    def node(self) -> SimNode:
        node = self.lab.nodes.get(self.ids["node"])
        if node is None:
            raise ApiError(404, f"Node not found: {self.ids['node']}")
        return node


# A handler returns the JSON of the response; None: the response has no body.
Handler = Callable[[Context], object]


@dataclass(frozen=True)
class Route:
    """A path with placeholders such as `{lab}`. An open route needs no log-in."""

    method: str
    pattern: re.Pattern[str]
    handler: Handler
    is_open: bool


ROUTES: list[Route] = []


def route(method: str, path: str, *, is_open: bool = False) -> Callable[[Handler], Handler]:
    """Register a handler."""
    pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))

    def register(handler: Handler) -> Handler:
        ROUTES.append(Route(method, pattern, handler, is_open))
        return handler

    return register


def respond(controller: SimulatedController, request: Request) -> Reply:
    """Return CML's response. Rejections have the form {code, description}."""
    try:
        return _dispatch(controller, request)
    except ApiError as error:
        return error.reply()


def _dispatch(controller: SimulatedController, request: Request) -> Reply:
    matches = [(each, match) for each in ROUTES if (match := each.pattern.fullmatch(request.path))]
    if not matches:
        raise ApiError(404, f"Not Found: {request.path}")
    if not controller.is_ready and request.path != "/system_information":
        raise ApiError(502, "Bad Gateway")
    allowed = [pair for pair in matches if pair[0].method == request.method]
    if not allowed:
        raise ApiError(405, f"Method Not Allowed: {request.method} {request.path}")
    chosen, match = allowed[0]
    now = controller.now
    user = None if chosen.is_open else controller.users.authenticate(request.bearer, now)
    result = chosen.handler(Context(controller, request, user, match.groupdict(), now))
    if isinstance(result, Reply):
        return result
    return Reply.empty() if result is None else Reply.of(result)
