"""A simulator in which tests inject faults, count calls and edit labs."""

from __future__ import annotations

import re
from collections import Counter, deque
from typing import Any

from lcm.cml.simulator import SimulatedController, SimulatorApp
from lcm.cml.simulator.admin_api import AdminApi
from lcm.cml.simulator.app import Send, pause, send_reply
from lcm.cml.simulator.calls import respond
from lcm.cml.simulator.edits import Edit, edit_lab
from lcm.cml.simulator.http_messages import ApiError, Reply, Request
from tests.support.simulator import more_calls  # noqa: F401  (adds calls)
from tests.support.simulator.faults import REPLACING_KINDS, Fault, FaultKind, apply_fault

KEPT_CALLS = 5_000
KEPT_TITLES = 5_000


class FaultyController(SimulatedController):
    """A controller with faults, the calls it got, and edits on request."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.faults: list[Fault] = []
        self.calls: deque[tuple[str, str, int]] = deque(maxlen=KEPT_CALLS)
        self.imported: deque[str] = deque(maxlen=KEPT_TITLES)

    def import_lab(self, *args: Any, **kwargs: Any) -> Any:
        lab, warnings = super().import_lab(*args, **kwargs)
        self.imported.append(lab.title)
        return lab, warnings

    def fail(self, fault: Fault) -> Fault:
        """Inject a fault."""
        self.faults.append(fault)
        return fault

    def faults_for(self, request: Request) -> list[Fault]:
        """Return the faults that apply to a request, and drop faults that are used up."""
        found = [fault for fault in self.faults if fault.matches(request)]
        self.faults = [fault for fault in self.faults if fault.times != 0]
        return found

    def call_counts(self) -> dict[str, int]:
        """Return how often each call was made, without ids in the paths."""
        return dict(Counter(f"{method} {_generic(path)}" for method, path, _ in self.calls))

    def edit(self, lab_id: str, edit: Edit) -> str:
        """Edit a lab without its owner's knowledge."""
        if lab_id not in self.labs:
            raise ApiError(404, f"Lab not found: {lab_id}")
        return edit_lab(self.labs[lab_id], edit, self.options, self.now)


class FaultAdminApi(AdminApi):
    """Also `/NAME/faults` (POST, DELETE), `/NAME/calls` (GET, DELETE), `/NAME/tokens` (DELETE) and
    `/NAME/labs/ID/edits` (POST).
    """

    def respond_for(
        self, controller: SimulatedController, method: str, rest: list[str], request: Request
    ) -> Reply:
        assert isinstance(controller, FaultyController)
        match method, *rest:
            case "POST", "faults":
                return Reply.of(controller.fail(Fault.from_dict(request.json())).to_dict(), 201)
            case "DELETE", "faults":
                controller.faults.clear()
                return Reply.empty()
            case "GET", "calls":
                return Reply.of(controller.call_counts())
            case "DELETE", "calls":
                controller.calls.clear()
                return Reply.empty()
            case "DELETE", "tokens":
                controller.users.tokens.clear()
                return Reply.empty()
            case "POST", "labs", lab_id, "edits":
                return Reply.of({"node": controller.edit(lab_id, _edit(request.json()))})
        return super().respond_for(controller, method, rest, request)

    def controller_json(self, controller: SimulatedController) -> dict[str, Any]:
        assert isinstance(controller, FaultyController)
        return super().controller_json(controller) | {
            "imported": list(controller.imported),
            "faults": [fault.to_dict() for fault in controller.faults],
        }


class ConnectionDropped(Exception):
    """Raised into the server, which then closes the connection."""


class FaultySimulator(SimulatorApp):
    """Applies the faults of its controllers."""

    controller_class = FaultyController
    administration_class = FaultAdminApi

    async def serve(self, controller: Any, request: Request, send: Send) -> None:
        faults = controller.faults_for(request)
        slow = [fault for fault in faults if fault.kind == FaultKind.LATENCY]
        await pause(controller.options.latency_seconds + sum(f.seconds for f in slow if not f.executed))
        fault = next((fault for fault in faults if fault.kind != FaultKind.LATENCY), None)
        reply = _reply(controller, request, fault)
        controller.calls.append((request.method, request.path, reply.status))
        await pause(sum(f.seconds for f in slow if f.executed))
        if fault is None or fault.kind != FaultKind.DROP:
            await send_reply(send, reply)
            return
        await _send_half(send, reply)
        raise ConnectionDropped


async def _send_half(send: Send, reply: Reply) -> None:
    headers = [(b"server", b"simulator")]
    if reply.status != 204:
        length = str(len(reply.body) + 1).encode()
        headers += [(b"content-type", reply.content_type.encode()), (b"content-length", length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    half = reply.body[: len(reply.body) // 2]
    await send({"type": "http.response.body", "body": half, "more_body": True})


def _reply(controller: FaultyController, request: Request, fault: Fault | None) -> Reply:
    if fault is None:
        return respond(controller, request)
    if fault.kind == FaultKind.UNAUTHORIZED:
        controller.users.forget(request.bearer)
        return respond(controller, request)
    if fault.kind in REPLACING_KINDS:
        lost = respond(controller, request) if fault.executed else None
        return lost if lost and fault.kind == FaultKind.DROP else Reply.error(fault.status, fault.description)
    return apply_fault(respond(controller, request), fault)


def _edit(values: Any) -> Edit:
    return Edit(str(values.get("kind")) if isinstance(values, dict) else "")


def _generic(path: str) -> str:
    """Return a path without its ids."""
    return re.sub(r"/(labs|nodes|links)/[^/]+", r"/\1/*", path)
