"""Persistence of controllers and labs in a file, so that a restarted simulator resumes."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from lcm.cml.simulator.controller import SimulatedController
from lcm.cml.simulator.labs import SimLab
from lcm.cml.simulator.options import ControllerOptions

logger = logging.getLogger(__name__)


@dataclass
class StoredController:
    """The stored values of a controller."""

    name: str
    options: ControllerOptions
    started_at: float
    imports: int
    labs: dict[str, SimLab]


STORED = TypeAdapter(list[StoredController])


class StateFile:
    """Uses wall-clock time: labs age while the simulator is down, as on a real worker."""

    clock = staticmethod(time.time)

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> list[SimulatedController]:
        """Return the stored controllers; empty if the file is missing or unreadable."""
        try:
            stored = STORED.validate_python(json.loads(self._path.read_text()))
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            logger.warning("%s could not be read, the simulator starts without labs: %s", self._path, error)
            return []
        return [_restored(controller) for controller in stored]

    def save(self, controllers: Iterable[SimulatedController]) -> None:
        """Write the file atomically and readable only by this user, because it holds passwords."""
        stored = [
            StoredController(
                each.name,
                each.options,
                each.started_at,
                each.imports,
                each.labs,
            )
            for each in controllers
        ]
        new = self._path.with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(STORED.dump_python(stored), file)
        new.replace(self._path)


def _restored(stored: StoredController) -> SimulatedController:
    controller = SimulatedController(stored.name, stored.options, clock=StateFile.clock)
    controller.started_at, controller.imports = stored.started_at, stored.imports
    controller.labs = stored.labs
    return controller
