"""Command line and server of the simulator: `simulate_cml` and `python -m lcm.cml.simulator`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gunicorn.app.base import BaseApplication

from lcm.cml.simulator.app import SimulatorApp
from lcm.cml.simulator.options import VERSIONS, ControllerOptions
from lcm.cml.simulator.state_file import StateFile

PORT = 9443
# One worker process, because labs are held in memory.
GUNICORN_SETTINGS: dict[str, Any] = {
    "workers": 1,
    "worker_class": "asgi",
    "asgi_lifespan": "off",
    "keepalive": 75,
    "graceful_timeout": 1,
    "loglevel": "critical",
    "accesslog": None,
    "control_socket_disable": True,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the simulator's command line options."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=PORT, help="port to listen on")
    parser.add_argument("--fd", type=int, help="listen on this open socket instead")
    parser.add_argument("--version", dest="cml_version", choices=sorted(VERSIONS), default="2.10")
    parser.add_argument("--tls", default="", metavar="FILE", help="certificate to serve with, as PEM")
    parser.add_argument(
        "--tls-key", default="", metavar="FILE", help="its key, if it is in a file of its own"
    )
    parser.add_argument("--username", default="admin")
    parser.add_argument("--password", default="simulated")
    parser.add_argument("--boot-seconds", type=float, default=5.0, help="mean time a node takes to boot")
    parser.add_argument(
        "--latency", type=float, default=0.0, metavar="SECONDS", help="delay added to every response"
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same values")
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="store controllers and labs here, and restore them on start",
    )
    parser.add_argument(
        "--no-controller", action="store_true", help="start without a controller; add controllers over HTTP"
    )


def serve(
    options: argparse.Namespace,
    print_line: Callable[[str], object],
    app_class: type[SimulatorApp] = SimulatorApp,
) -> None:
    """Serve until stopped."""
    settings = {
        **GUNICORN_SETTINGS,
        "bind": f"{options.host}:{options.port}" if options.fd is None else f"fd://{options.fd}",
        "certfile": options.tls or None,
        "keyfile": options.tls_key or options.tls or None,
    }
    if options.fd is None:
        url = f"{'https' if options.tls else 'http'}://{options.host}:{options.port}/"
        settings["when_ready"] = lambda _: print_line(f"Simulated CML {options.cml_version} at {url}")
    SimulatorServer(settings, lambda: _app(options, app_class)).run()


def _app(options: argparse.Namespace, app_class: type[SimulatorApp]) -> SimulatorApp:
    app = app_class(state_file=StateFile(options.state) if options.state else None)
    if not options.no_controller:
        app.add(
            "",
            ControllerOptions(
                version=options.cml_version,
                users={options.username: options.password},
                boot_seconds=options.boot_seconds,
                latency_seconds=options.latency,
                seed=options.seed,
            ),
        )
    return app


class SimulatorServer(BaseApplication):
    """Runs until stopped. The application is created in the worker process."""

    def __init__(self, settings: dict[str, Any], make: Callable[[], SimulatorApp]) -> None:
        self.settings = settings
        self.load = make
        super().__init__()

    def load_config(self) -> None:
        for name, value in self.settings.items():
            self.cfg.set(name, value)
