"""gunicorn server of the simulator: one worker process, because labs are held in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gunicorn.app.base import BaseApplication

from lcm.cml.simulator.app import SimulatorApp

SETTINGS: dict[str, Any] = {
    "workers": 1,
    "worker_class": "asgi",
    "asgi_lifespan": "off",
    "keepalive": 75,
    "graceful_timeout": 1,
    "loglevel": "critical",
    "accesslog": None,
    "control_socket_disable": True,
}


class SimulatorServer(BaseApplication):  # type: ignore[misc]
    """Runs until stopped. The application is created in the worker process. `bind`: address or `fd://N`."""

    def __init__(
        self,
        make: Callable[[], SimulatorApp],
        bind: str,
        *,
        certificate: str = "",
        key: str = "",
        on_ready: Callable[[], object] | None = None,
    ) -> None:
        self.make = make
        self.settings = {**SETTINGS, "bind": bind}
        if certificate:
            self.settings |= {"certfile": certificate, "keyfile": key or certificate}
        if on_ready:
            self.settings["when_ready"] = lambda _: on_ready()
        super().__init__()

    def load_config(self) -> None:
        for name, value in self.settings.items():
            self.cfg.set(name, value)

    def load(self) -> SimulatorApp:
        return self.make()
