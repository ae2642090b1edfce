"""Persistence of controllers and labs in a file, so that a restarted simulator resumes."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lcm.cml.simulator.controller import SimulatedController
from lcm.cml.simulator.labs import SimInterface, SimLab, SimLink, SimNode
from lcm.cml.simulator.node_lifecycle import BootPlan, NodeLifecycle
from lcm.cml.simulator.options import ControllerOptions, OptionError

logger = logging.getLogger(__name__)


class StateFile:
    """Uses wall-clock time: labs age while the simulator is down, as on a real worker."""

    clock = staticmethod(time.time)

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> list[SimulatedController]:
        """Return the stored controllers; empty if the file is missing or unreadable."""
        try:
            return [_controller(values) for values in json.loads(self._path.read_text())]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, KeyError, OptionError) as error:
            logger.warning("%s could not be read, the simulator starts without labs: %s", self._path, error)
            return []

    def save(self, controllers: Iterable[SimulatedController]) -> None:
        """Write the file atomically and readable only by this user, because it holds passwords."""
        new = self._path.with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump([_values(controller) for controller in controllers], file)
        new.replace(self._path)


def _values(controller: SimulatedController) -> dict[str, Any]:
    return {
        "name": controller.name,
        "options": asdict(controller.options),
        "started_at": controller.started_at,
        "imports": controller.imports,
        "labs": [asdict(lab) for lab in controller.labs.values()],
    }


def _controller(values: dict[str, Any]) -> SimulatedController:
    options = ControllerOptions.from_dict(values["options"])
    made = SimulatedController(values["name"], options, clock=StateFile.clock)
    made.started_at, made.imports = values["started_at"], values["imports"]
    made.labs = {lab["id"]: _lab(lab) for lab in values["labs"]}
    return made


def _lab(values: dict[str, Any]) -> SimLab:
    nodes = {key: _node(node) for key, node in values["nodes"].items()}
    return SimLab(
        **values | {"nodes": nodes, "links": {key: _link(link) for key, link in values["links"].items()}}
    )


def _node(values: dict[str, Any]) -> SimNode:
    life = NodeLifecycle(**values["life"] | {"plan": BootPlan(**values["life"]["plan"])})
    return SimNode(
        **values | {"life": life, "interfaces": [SimInterface(**each) for each in values["interfaces"]]}
    )


def _link(values: dict[str, Any]) -> SimLink:
    return SimLink(**values | {"a": SimInterface(**values["a"]), "b": SimInterface(**values["b"])})
