"""Administration API of the simulator: add, list and remove controllers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lcm.cml.simulator.controller import SimulatedController
from lcm.cml.simulator.http_messages import ApiError, Reply, Request
from lcm.cml.simulator.options import ControllerOptions, OptionError

if TYPE_CHECKING:
    from lcm.cml.simulator.app import SimulatorApp

ROOT = "/simulator/controllers"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
RESERVED = frozenset({"simulator", "api"})


class AdminApi:
    """`GET /simulator/controllers`, and beneath it `/NAME` (GET, PUT, DELETE)."""

    def __init__(self, app: SimulatorApp) -> None:
        self.app = app

    def respond(self, request: Request) -> Reply:
        try:
            return self._route(request)
        except ApiError as error:
            return error.reply()
        except (OptionError, ValueError) as error:
            return Reply.error(400, str(error))

    def _route(self, request: Request) -> Reply:
        if not request.path.startswith(ROOT):
            raise ApiError(404, f"Not Found: {request.path}")
        match request.method, *request.path.removeprefix(ROOT).strip("/").split("/"):
            case "GET", "":
                return Reply.of([self.controller_json(each) for each in self.app.controllers.values()])
            case "PUT", name:
                return self._add(name, request)
            case "DELETE", name if self.app.remove(name):
                return Reply.empty()
            case method, name, *rest if name in self.app.controllers:
                return self.respond_for(self.app.controllers[name], method, rest, request)
        raise ApiError(404, f"Not Found: {request.method} {request.path}")

    def _add(self, name: str, request: Request) -> Reply:
        if not NAME.fullmatch(name) or name in RESERVED:
            raise OptionError(f"{name!r} is not a valid controller name.")
        options = ControllerOptions.from_dict(request.json() if request.body else {})
        is_new = name not in self.app.controllers
        return Reply.of(self.controller_json(self.app.add(name, options)), 201 if is_new else 200)

    def respond_for(
        self, controller: SimulatedController, method: str, rest: list[str], request: Request
    ) -> Reply:
        """Respond to a request beneath `/NAME`."""
        if (method, rest) == ("GET", []):
            return Reply.of(self.controller_json(controller))
        raise ApiError(404, f"Not Found: {request.method} {request.path}")

    def controller_json(self, controller: SimulatedController) -> dict[str, object]:
        now = controller.now
        return {
            "name": controller.name,
            "path": f"/{controller.name}" if controller.name else "",
            "options": controller.options.to_dict(),
            "imports": controller.imports,
            "labs": {
                lab.id: {"title": lab.title, "state": lab.state(now)} for lab in controller.labs.values()
            },
        }
