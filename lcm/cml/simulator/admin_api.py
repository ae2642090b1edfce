"""Administration API of the simulator: add and remove controllers, and inject faults."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lcm.cml.simulator.controller import SimulatedController
from lcm.cml.simulator.edits import Edit
from lcm.cml.simulator.faults import Fault
from lcm.cml.simulator.http_messages import ApiError, Reply, Request
from lcm.cml.simulator.options import ControllerOptions, OptionError

if TYPE_CHECKING:
    from lcm.cml.simulator.app import SimulatorApp

ROOT = "/simulator/controllers"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
RESERVED = frozenset({"simulator", "api"})


class AdminApi:
    """`GET /simulator/controllers`, and beneath it `/NAME` (GET, PUT, DELETE), `/NAME/faults` (POST, DELETE),
    `/NAME/calls` (GET, DELETE), `/NAME/tokens` (DELETE) and `/NAME/labs/ID/edits` (POST).
    """

    def __init__(self, app: SimulatorApp) -> None:
        self.app = app

    def answer(self, request: Request) -> Reply:
        try:
            return self._answer(request)
        except ApiError as error:
            return error.reply()
        except (OptionError, ValueError) as error:
            return Reply.error(400, str(error))

    def _answer(self, request: Request) -> Reply:
        if not request.path.startswith(ROOT):
            raise ApiError(404, f"Not Found: {request.path}")
        match request.method, *request.path.removeprefix(ROOT).strip("/").split("/"):
            case "GET", "":
                return Reply.of([self._shape(each) for each in self.app.controllers.values()])
            case "PUT", name:
                return self._add(name, request)
            case "DELETE", name if self.app.remove(name):
                return Reply.empty()
            case method, name, *rest if name in self.app.controllers:
                return self._at(self.app.controllers[name], method, rest, request)
        raise ApiError(404, f"Not Found: {request.method} {request.path}")

    def _add(self, name: str, request: Request) -> Reply:
        if not NAME.fullmatch(name) or name in RESERVED:
            raise OptionError(f"{name!r} is no name for a controller.")
        options = ControllerOptions.from_dict(request.json() if request.body else {})
        is_new = name not in self.app.controllers
        return Reply.of(self._shape(self.app.add(name, options)), 201 if is_new else 200)

    def _at(self, controller: SimulatedController, method: str, rest: list[str], request: Request) -> Reply:
        match method, *rest:
            case ["GET"]:
                return Reply.of(self._shape(controller))
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
                controller.users.forget_all()
                return Reply.empty()
            case "POST", "labs", lab_id, "edits":
                return Reply.of({"node": controller.edit(lab_id, _edit(request.json()))})
        raise ApiError(404, f"Not Found: {request.method} {request.path}")

    def _shape(self, controller: SimulatedController) -> dict[str, Any]:
        now = controller.now
        return {
            "name": controller.name,
            "path": f"/{controller.name}" if controller.name else "",
            "options": controller.options.to_dict(),
            "imports": controller.imports,
            "imported": list(controller.imported),
            "faults": [fault.to_dict() for fault in controller.faults],
            "labs": {
                lab.id: {"title": lab.title, "state": lab.state(now)} for lab in controller.labs.values()
            },
        }


def _edit(values: Any) -> Edit:
    return Edit(str(values.get("kind")) if isinstance(values, dict) else "")
